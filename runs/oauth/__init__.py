"""Sign-in for MCP clients: an OAuth 2.1 authorization server for public clients."""
