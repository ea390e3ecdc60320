"""Operations that change or remove rows of a table."""
