"""What stands around every page: shortcuts and messages."""
