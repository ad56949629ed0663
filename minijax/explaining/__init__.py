"""Pages that show what became of a program: its texts side by side, its costs and its memory."""
