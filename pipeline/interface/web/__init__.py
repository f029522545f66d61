"""Code that all local web pages share: protection, serving, page frame and style."""
