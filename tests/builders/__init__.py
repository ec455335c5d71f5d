"""Operations from one line."""
