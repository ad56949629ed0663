// The functions that the tests of jax.ffi register with XLA.
#include <atomic>
#include <cstring>
#include <numeric>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using ffi::AnyBuffer, ffi::Buffer, ffi::Error, ffi::Ffi, ffi::Result, ffi::ResultBuffer;

// a * x + y, or an error if the tag says so.
static Error Axpy(float a, std::string_view tag, Buffer<ffi::F32> x, Buffer<ffi::F32> y, ResultBuffer<ffi::F32> out) {
  if (tag == "fail") return Error::Internal("axpy was asked to fail");
  if (tag == "argument") return Error::InvalidArgument("axpy does not like its argument");
  for (size_t i = 0; i < x.element_count(); ++i)
    out->typed_data()[i] = a * x.typed_data()[i] + y.typed_data()[i % y.element_count()];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(axpy, Axpy, Ffi::Bind().Attr<float>("a").Attr<std::string_view>("tag")
    .Arg<Buffer<ffi::F32>>().Arg<Buffer<ffi::F32>>().Ret<Buffer<ffi::F32>>());

// The bytes of x as they lie in memory; the number of its dtype, its rank and its first three sizes.
static Error Memory(AnyBuffer x, Result<AnyBuffer> bytes, ResultBuffer<ffi::S64> info) {
  if (x.size_bytes() != bytes->size_bytes()) return Error::InvalidArgument("sizes differ");
  std::memcpy(bytes->untyped_data(), x.untyped_data(), x.size_bytes());
  auto dims = x.dimensions();
  int64_t values[5] = {(int64_t)x.element_type(), (int64_t)dims.size(), -1, -1, -1};
  for (size_t i = 0; i < dims.size() && i < 3; ++i) values[i + 2] = dims[i];
  std::memcpy(info->typed_data(), values, sizeof(values));
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(memory, Memory,
    Ffi::Bind().Arg<AnyBuffer>().Ret<AnyBuffer>().Ret<Buffer<ffi::S64>>());

// The sum of a row of x at a time, and how many rows there were in this call.
static Error RowSums(Buffer<ffi::F32> x, ResultBuffer<ffi::F32> sums, ResultBuffer<ffi::F32> rows) {
  size_t n = x.dimensions().back(), count = n ? x.element_count() / n : 0;
  for (size_t i = 0; i < count; ++i) {
    sums->typed_data()[i] = std::accumulate(x.typed_data() + i * n, x.typed_data() + (i + 1) * n, 0.f);
    rows->typed_data()[i] = count;
  }
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(row_sums, RowSums,
    Ffi::Bind().Arg<Buffer<ffi::F32>>().Ret<Buffer<ffi::F32>>().Ret<Buffer<ffi::F32>>());

// Attributes of every kind, as a row of numbers.
static Error Attributes(bool flag, int8_t i8, uint16_t u16, int32_t i32, int64_t i64, float f32, double f64,
                        std::string_view text, ffi::Span<const int32_t> numbers, ffi::Span<const double> reals,
                        ffi::Dictionary nested, ResultBuffer<ffi::F64> out) {
  auto inner = nested.get<int64_t>("inner");
  if (inner.has_error()) return Error::InvalidArgument("no inner attribute");
  double values[] = {(double)flag, (double)i8, (double)u16, (double)i32, (double)i64, f32, f64, (double)text.size(),
                     (double)text.back(), (double)numbers.size(), (double)numbers[1], reals[0], (double)*inner};
  std::memcpy(out->typed_data(), values, sizeof(values));
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(attributes, Attributes,
    Ffi::Bind().Attr<bool>("flag").Attr<int8_t>("i8").Attr<uint16_t>("u16").Attr<int32_t>("i32").Attr<int64_t>("i64")
    .Attr<float>("f32").Attr<double>("f64").Attr<std::string_view>("text").Attr<ffi::Span<const int32_t>>("numbers")
    .Attr<ffi::Span<const double>>("reals").Attr<ffi::Dictionary>("nested").Ret<Buffer<ffi::F64>>());

// A state made when the program is, and counted up by each call.
struct State {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  std::atomic<int32_t> value;
};
ffi::TypeId State::id = {};
ffi::TypeInfo State::info = ffi::MakeTypeInfo<State>();
static ffi::ErrorOr<std::unique_ptr<State>> MakeState(int32_t start) {
  if (start < 0) return ffi::Unexpected(Error::InvalidArgument("a state cannot start below zero"));
  auto state = std::make_unique<State>();
  state->value = start;
  return state;
}
static Error CountUp(State* state, ResultBuffer<ffi::S32> out) {
  out->typed_data()[0] = state->value++;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(make_state, MakeState, Ffi::BindInstantiate().Attr<int32_t>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(count_up, CountUp,
    Ffi::Bind().Ctx<ffi::State<State>>().Ret<Buffer<ffi::S32>>());
extern "C" void* state_id() { return &State::id; }
extern "C" void* state_info() { return &State::info; }

// What somebody outside of the program sees.
static std::atomic<int> told{0};
static Error Tell(Buffer<ffi::S32> x) {
  told += x.typed_data()[0];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(tell, Tell, Ffi::Bind().Arg<Buffer<ffi::S32>>());
extern "C" int what_was_told() { return told.exchange(0); }

// Adds one, and says whether the result has the memory of the argument.
static Error AddOne(Buffer<ffi::F32> x, ResultBuffer<ffi::F32> out, ResultBuffer<ffi::PRED> same) {
  for (size_t i = 0; i < x.element_count(); ++i) out->typed_data()[i] = x.typed_data()[i] + 1;
  same->typed_data()[0] = x.typed_data() == out->typed_data();
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(add_one, AddOne,
    Ffi::Bind().Arg<Buffer<ffi::F32>>().Ret<Buffer<ffi::F32>>().Ret<Buffer<ffi::PRED>>());

// A token in and out, and a number between.
static Error Pass(ffi::Token, Buffer<ffi::F32> x, Result<ffi::Token>, ResultBuffer<ffi::F32> out) {
  out->typed_data()[0] = 2 * x.typed_data()[0];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(pass_token, Pass,
    Ffi::Bind().Arg<ffi::Token>().Arg<Buffer<ffi::F32>>().Ret<ffi::Token>().Ret<Buffer<ffi::F32>>());

// The interfaces before the typed one.
extern "C" void original(void* out, const void** in) { *(float*)out = 2 * *(const float*)in[0]; }
extern "C" void configured(void* out, const void** in, const char* text, size_t length, void* status) {
  *(float*)out = *(const float*)in[0] + length + (length ? text[0] : 0);
}
