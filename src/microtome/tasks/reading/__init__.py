"""From files to rows: every format that tasks come in."""
