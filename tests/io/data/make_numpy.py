"""Writes the .npy and .npz files beside it; made with NumPy 2.4.6 (python3 make_numpy.py)."""
import numpy as np

a = np.arange(6, dtype=np.float32).reshape(2, 3)
np.save("fortran.npy", np.asfortranarray(a))
np.save("fortran3.npy", np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4)))
np.save("big_endian.npy", a.astype(">f4"))
np.save("big_endian_complex.npy", np.array([1 + 2j, -3.5j], dtype=">c8"))
arrays = dict(
    bool_=np.array([True, False]), u8=np.array([1, 255], np.uint8), i8=np.array([-128, 127], np.int8),
    i16=np.array([-300, 300], np.int16), i32=np.array([-70000, 70000], np.int32),
    i64=np.array([-(2**40), 2**40]), u32=np.array([0, 2**32 - 1], np.uint32), f16=np.array([0.5, -65504], np.float16),
    f32=a, f64=np.array(0.1), c64=np.array([1 + 2j], np.complex64), empty=np.zeros((0, 3), np.float32),
)
np.savez("stored.npz", **arrays)
np.savez_compressed("deflated.npz", **arrays, zeros=np.zeros((64, 64), np.float32))
