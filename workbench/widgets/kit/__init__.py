"""What views are made of: payloads, colours, selection, pictures without a browser."""
