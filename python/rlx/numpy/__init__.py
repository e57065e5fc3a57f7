"""Functions under the names they have in NumPy, on arrays and on traced values. Types never change by themselves, but whole
numbers become reals where a function has real values."""

import math as _math

from ._creation import *  # noqa: F401, F403
from ._elementwise import *  # noqa: F401, F403
from ._grids import *  # noqa: F401, F403
from ._nan import *  # noqa: F401, F403
from ._ordering import *  # noqa: F401, F403
from ._parts import *  # noqa: F401, F403
from ._polynomials import *  # noqa: F401, F403
from ._products import *  # noqa: F401, F403
from ._reductions import *  # noqa: F401, F403
from ._sets import *  # noqa: F401, F403
from ._shape import *  # noqa: F401, F403
from . import fft, linalg  # noqa: F401

pi, e, inf, nan, euler_gamma = _math.pi, _math.e, _math.inf, _math.nan, 0.5772156649015329
newaxis = None
float32, float64, float16, bfloat16 = "f32", "f64", "f16", "bf16"
int8, int16, int32, int64, uint8, uint32, bool_ = "i8", "i16", "i32", "i64", "u8", "u32", "bool"
complex64 = "c64"
