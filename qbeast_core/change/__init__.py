"""Operations that change, replace or remove rows of a table."""
