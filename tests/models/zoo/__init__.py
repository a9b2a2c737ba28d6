"""Every kind of model a user brings, at sizes that compile in a moment; a case is a model and how it is fed."""
