// The words of the standard library that sources of other rooms use (room_sources.h), for the compiler of kernels, which has no headers.
#pragma once

namespace rlx::cuda {

inline constexpr char kHostWords[] = R"cuda(
typedef u8 uint8_t;
typedef i8 int8_t;
typedef u16 uint16_t;
typedef i16 int16_t;
typedef u32 uint32_t;
typedef i32 int32_t;
typedef u64 uint64_t;
typedef i64 int64_t;
constexpr f64 M_PI = 3.14159265358979323846;

namespace std {
typedef decltype(sizeof(0)) size_t;
enum class byte : u8 {};
template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> constexpr const T& clamp(const T& x, const T& low, const T& high) { return x < low ? low : high < x ? high : x; }
template <class To, class From> constexpr To bit_cast(const From& x) { return __builtin_bit_cast(To, x); }
inline int popcount(u32 x) { return __popc(x); }
inline f32 abs(f32 x) { return fabsf(x); }
inline f32 copysign(f32 x, f32 sign) { return copysignf(x, sign); }
inline f64 fabs(f64 x) { return ::fabs(x); }
inline f64 sqrt(f64 x) { return ::sqrt(x); }
inline f64 exp(f64 x) { return ::exp(x); }
inline f64 log(f64 x) { return ::log(x); }
inline f64 tan(f64 x) { return ::tan(x); }
inline f64 ceil(f64 x) { return ::ceil(x); }
inline bool isfinite(f64 x) { return x - x == 0; }
// Of normal and subnormal x that are not 0; the scale of a power of two is exact.
inline int ilogb(f32 x) {
  const u32 bits = u32(__float_as_int(x)) & 0x7fffffffu;
  return bits >= 0x800000u ? int(bits >> 23) - 127 : -118 - __clz(int(bits));
}
inline f32 ldexp(f32 x, int e) { return f32(f64(x) * from_bits(u64(e + 1023) << 52)); }
inline void memset(void* to, int x, size_t n) {
  for (size_t i = 0; i < n; ++i) static_cast<u8*>(to)[i] = u8(x);
}
inline void memcpy(void* to, const void* from, size_t n) {
  for (size_t i = 0; i < n; ++i) static_cast<u8*>(to)[i] = static_cast<const u8*>(from)[i];
}
template <class T> void copy_n(const T* from, int n, T* to) {
  for (int i = 0; i < n; ++i) to[i] = from[i];
}
template <class T> struct numeric_limits;
template <> struct numeric_limits<f32> { static f32 infinity() { return from_bits(0x7f800000u); } };
template <class A, class B> struct pair { A first; B second; };
template <class T, size_t N> struct array {
  T v[N];
  constexpr T& operator[](size_t i) { return v[i]; }
  constexpr const T& operator[](size_t i) const { return v[i]; }
};
template <class T> class span {  // of const T
 public:
  template <class U, size_t N> constexpr span(const U (&a)[N]) : p_(a), n_(N) {}
  template <class U, size_t N> constexpr span(const array<U, N>& a) : p_(a.v), n_(N) {}
  constexpr size_t size() const { return n_; }
  constexpr T& operator[](size_t i) const { return p_[i]; }
  constexpr T& back() const { return p_[n_ - 1]; }
  constexpr T* begin() const { return p_; }
  constexpr T* end() const { return p_ + n_; }

 private:
  T* p_;
  size_t n_;
};
template <class T> class vector;  // named, not made
struct string_view {              // kept, not read
  const char* text;
  constexpr string_view(const char* t) : text(t) {}
  constexpr bool operator==(string_view other) const { return text == other.text; }
};
// A heap with the last of the order on top.
template <class T, class Before> void sort(T* first, T* last, Before before) {
  const auto exchange = [&](int i, int j) {
    const T held = first[i];
    first[i] = first[j], first[j] = held;
  };
  const auto sink = [&](int at, int size) {
    for (int child; (child = 2 * at + 1) < size; at = child) {
      if (child + 1 < size && before(first[child], first[child + 1])) ++child;
      if (!before(first[at], first[child])) return;
      exchange(at, child);
    }
  };
  const int n = int(last - first);
  for (int i = n / 2; i-- > 0;) sink(i, n);
  for (int size = n; size-- > 1;) exchange(0, size), sink(0, size);
}
}  // namespace std
using std::size_t;
)cuda";

}  // namespace rlx::cuda
