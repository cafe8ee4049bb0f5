"""The structural OpenAPI v3 schema of every kind, written compactly and built on first use.

Each module holds the definitions of one area as plain JSON; shared definitions are shared objects.
`registry.schema_of` is the way in. Nothing here validates, defaults or prunes: `trainwright.schema`
does, from these schemas.
"""
