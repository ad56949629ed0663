"""Operations that only kernels have."""
