"""What views are made of: payloads, colours, selection, pictures without a browser.

`library` brings all JavaScript to a page once, `base` is a view's widget, `payload` what it is sent. Imports profiles
and reports. Tests: tests/widgets/kit.
"""
