"""Arrays that stay on a GPU: shared with other libraries by DLPack, operands and results of functions. Without a GPU the emulated one
does: tests/backend/cuda/emulated."""

import ctypes
import gc
import unittest

import numpy as np

import rlx
import rlx.numpy as rnp


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def tensor_of(capsule, name=b"dltensor"):
    return Tensor.from_address(_pointer(capsule, name))


def address_of(x):
    capsule = x.__dlpack__()  # the tensor lives as long as it does
    return tensor_of(capsule).data


class Foreign:
    """A tensor of another library: it hands on the capsule of an array and writes down how it was asked."""

    def __init__(self, array):
        self.array, self.streams, self.capsules = array, [], []

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        self.capsules.append(self.array.__dlpack__())
        return self.capsules[-1]

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@unittest.skipIf(rlx._rlx.devices()["cuda"] is not None, rlx._rlx.devices()["cuda"])
class DeviceArrays(unittest.TestCase):
    def setUp(self):
        self.numbers = np.arange(12, dtype=np.float32).reshape(3, 4)
        self.x = rlx.to_device(self.numbers)

    def test_there_and_back(self):
        self.assertIsInstance(self.x, rlx.DeviceArray)
        self.assertEqual((self.x.shape, self.x.dtype, self.x.ndim, self.x.size), ((3, 4), "f32", 2, 12))
        self.assertEqual(repr(self.x), "DeviceArray(f32[3, 4])")
        np.testing.assert_array_equal(self.x.numpy(), self.numbers)
        np.testing.assert_array_equal(np.asarray(self.x.to_host()), self.numbers)
        self.assertIs(rlx.to_device(self.x), self.x)
        for dtype in ("f16", "bf16", "f64", "i64", "u8", "bool", "c64"):
            host = rlx.array(self.numbers).astype(dtype)
            self.assertEqual(rlx.to_device(host).tolist(), host.tolist())
        self.assertEqual(rlx.to_device(rnp.zeros((0, 3))).shape, (0, 3))

    def test_functions_of_device_arrays_stay_there(self):
        f = rlx.jit(lambda x, w: {"y": rnp.tanh(x @ w), "sum": rnp.sum(x, axis=0)})
        w = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
        out = f(self.x, w)  # w is sent
        self.assertIsInstance(out["y"], rlx.DeviceArray)
        np.testing.assert_allclose(out["y"].numpy(), np.tanh(self.numbers @ w), rtol=1e-5, atol=1e-6)
        again = f(out["sum"].reshape(1, 4), out["y"].astype("f32")[:1].reshape(1, 2).repeat(4, axis=0))
        self.assertEqual(again["y"].shape, (1, 2))
        host = f(rlx.array(self.numbers), rlx.array(w))  # the same function on the host
        self.assertIsInstance(host["y"], rlx.Array)

    def test_operators_and_gradients(self):
        y = (self.x * 2.0 + rlx.array(self.numbers)) @ self.x.T
        self.assertIsInstance(y, rlx.DeviceArray)
        np.testing.assert_allclose(y.numpy(), 3 * self.numbers @ self.numbers.T, rtol=1e-5)
        g = rlx.jit(rlx.grad(lambda x: rnp.sum(x * x)))(self.x)
        self.assertIsInstance(g, rlx.DeviceArray)
        np.testing.assert_array_equal(g.numpy(), 2 * self.numbers)
        constant = self.x
        np.testing.assert_array_equal(rlx.jit(lambda z: z + constant)(rlx.array(self.numbers)).numpy(), 2 * self.numbers)
        self.assertEqual(float(rnp.sum(self.x)), float(self.numbers.sum()))

    def test_memory_is_shared_and_not_copied(self):
        self.assertEqual(self.x.__dlpack_device__(), (2, 0))
        capsule = self.x.__dlpack__(stream=1, max_version=(1, 0))
        t = tensor_of(capsule)
        self.assertEqual((t.device_type, t.device_id, t.rank, t.code, t.bits, t.lanes), (2, 0, 2, 2, 32, 1))
        self.assertEqual((t.dims[0], t.dims[1]), (3, 4))
        foreign = Foreign(self.x)
        y = rlx.from_dlpack(foreign)
        self.assertIsInstance(y, rlx.DeviceArray)
        self.assertEqual(foreign.streams, [1])  # the default stream waits for the other library
        self.assertEqual(tensor_of(foreign.capsules[0], b"used_dltensor").data, t.data)
        self.assertEqual(address_of(y), t.data)
        np.testing.assert_array_equal((y + 1.0).numpy(), self.numbers + 1)

    def test_memory_lives_as_long_as_one_of_its_owners(self):
        foreign = Foreign(rlx.to_device(self.numbers))
        y = rlx.from_dlpack(foreign)
        del foreign
        gc.collect()
        rest = [rlx.to_device(np.full((3, 4), 7, np.float32)) for _ in range(4)]  # would lie where y did
        np.testing.assert_array_equal(y.numpy(), self.numbers)
        capsule = y.__dlpack__()
        del y, rest
        gc.collect()
        data = tensor_of(capsule).data
        other = rlx.to_device(self.numbers)
        self.assertNotEqual(address_of(other), data)

    def test_from_dlpack_on_the_host_borrows(self):
        x = np.arange(3, dtype=np.float32)
        self.assertTrue(np.shares_memory(rlx.from_dlpack(x).numpy(), x))
        with self.assertRaisesRegex(rlx.Error, "from_dlpack: a list has no __dlpack__"):
            rlx.from_dlpack([1.0])

    def test_torch_shares_both_ways(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        if not torch.cuda.is_available():
            self.skipTest("torch sees no GPU")
        t = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
        x = rlx.from_dlpack(t)
        self.assertEqual(address_of(x), t.data_ptr())
        y = rlx.jit(lambda x: rnp.exp(x * 0.1))(x)
        back = torch.from_dlpack(y)
        self.assertEqual(back.device.type, "cuda")
        self.assertEqual(back.data_ptr(), address_of(y))
        torch.testing.assert_close(back, torch.exp(t * 0.1))
        with torch.cuda.stream(torch.cuda.Stream()):  # work that is under way when the tensor is taken
            big = torch.randn(4096, 4096, device="cuda")
            for _ in range(20):
                big = torch.tanh(big @ big)
            got = rlx.from_dlpack(big)
        np.testing.assert_array_equal((got + 0.0).numpy(), big.cpu().numpy())
        with self.assertRaisesRegex(rlx.Error, "is strided; it must be dense and row-major"):
            rlx.from_dlpack(t.T) + 1.0


if __name__ == "__main__":
    unittest.main()
