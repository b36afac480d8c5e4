// SPDX-License-Identifier: Apache-2.0
//
// ImageDecoder with bytes that announce more than they hold. An image larger than the session
// allows is refused, bytes that cannot hold their image are no image, and neither takes memory or
// time.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

using namespace std::literals;

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}
std::string big(uint64_t value, int bytes) {
  const std::string out = little(value, bytes);
  return {out.rbegin(), out.rend()};
}

// A TIFF with a single strip of |compression|, which has only a few bytes.
std::string tiff(uint32_t width, uint32_t height, uint32_t compression) {
  const std::pair<uint32_t, uint32_t> fields[] = {{256, width},       {257, height}, {258, 8},
                                                  {259, compression}, {262, 1},      {273, 8},
                                                  {277, 1},           {278, height}, {279, 16}};
  std::string out = "II*\0"s + little(24, 4) + std::string(16, '\0') + little(std::size(fields), 2);
  for (const auto& [tag, value] : fields)
    out += little(tag, 2) + little(4, 2) + little(1, 4) + little(value, 4);
  return out + little(0, 4);
}

std::string webp(uint32_t width, uint32_t height) {
  const std::string data =
      "\x2f"s + little((width - 1) | uint64_t{height - 1} << 14, 4) + std::string(19, '\0');
  const std::string chunk = "VP8L" + little(data.size(), 4) + data;
  return "RIFF" + little(4 + chunk.size(), 4) + "WEBP" + chunk;
}

std::string png(uint32_t width, uint32_t height) {
  const auto chunk = [](const std::string& name, const std::string& data) {
    uint32_t crc = 0xffffffffu;
    for (const char c : name + data) {
      crc ^= static_cast<uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1u) ? 0xedb88320u : 0u);
    }
    return big(data.size(), 4) + name + data + big(~crc, 4);
  };
  return "\x89PNG\r\n\x1a\n"s + chunk("IHDR", big(width, 4) + big(height, 4) + "\x08\x02\0\0\0"s) +
         chunk("IDAT", std::string(16, 'x')) + chunk("IEND", "");
}

// A codestream with a tile of |tile| pixels each way and without packets.
std::string jpeg2000(uint32_t width, uint32_t height, uint32_t tile = 20000, int components = 1) {
  std::string size = big(0, 2) + big(width, 4) + big(height, 4) + big(0, 8) + big(tile, 4) +
                     big(tile, 4) + big(0, 8) + big(static_cast<uint64_t>(components), 2);
  for (int i = 0; i < components; ++i) size += "\x07\x01\x01"s;
  const std::string cod = "\0\0\0\x01\0\x01\x04\x04\0\x01"s, qcd = "\x40\x40\x48\x48\x50"s;
  return "\xff\x4f\xff\x51"s + big(size.size() + 2, 2) + size + "\xff\x52"s +
         big(cod.size() + 2, 2) + cod + "\xff\x5c"s + big(qcd.size() + 2, 2) + qcd +
         "\xff\x90\0\x0a\0\0\0\0\0\0\0\x01\xff\x93\xff\xd9"s;
}

// A grey image in |scans| passes over all blocks. Each pass has a bit for each block, which changes
// nothing.
std::string progressive(uint32_t size, int scans) {
  std::string out = "\xff\xd8\xff\xdb\0\x43\0"s + std::string(64, '\x01');
  out += "\xff\xc2\0\x0b\x08"s + big(size, 2) + big(size, 2) + "\x01\x01\x11\0"s;
  out += "\xff\xc4\0\x14\0\x01"s + std::string(15, '\0') + "\0"s;
  const std::string scan = "\xff\xda\0\x08\x01\x01\0\0\0\0"s + std::string(size * size / 512, '\0');
  for (int i = 0; i < scans; ++i) out += scan;
  return out + "\xff\xd9"s;
}

struct Decoded {
  Failure failure;
  std::vector<int64_t> dims;
  std::vector<uint8_t> pixels;
};

Decoded decode(const std::string& bytes, const Settings& settings = {}) {
  static const Handle<pfrt_env> env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_UINT8, {"N"});
  g.node("ImageDecoder", {"x"}, {"y"});
  g.output("y");
  const auto options = make_options(PFRT_OPTIONS_SESSION, settings);
  const auto session = make_session(env.get(), g, options.get());
  const Array x =
      array<uint8_t>({static_cast<int64_t>(bytes.size())}, {bytes.begin(), bytes.end()});
  std::vector<Array> out;
  Decoded decoded{try_run(session.get(), {x}, &out), {}, {}};
  if (!out.empty()) decoded = {decoded.failure, out[0].dims, out[0].as<uint8_t>()};
  return decoded;
}

testing::AssertionResult too_large(const std::string& bytes) {
  return fails(decode(bytes).failure, PFRT_CODE_INVALID_ARGUMENT,
               {"ImageDecoder", "16000 x 16001", "67108864", "image.max_pixels"});
}

testing::AssertionResult no_image(const std::string& bytes) {
  const Decoded decoded = decode(bytes);
  if (decoded.failure.ok() && decoded.dims == std::vector<int64_t>{0, 0, 3})
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << decoded.failure.message << decoded.dims.size();
}

TEST(Images, larger_than_the_session_allows_are_refused) {
  EXPECT_TRUE(too_large(tiff(16000, 16001, 8)));
  EXPECT_TRUE(too_large(webp(16000, 16001)));
  EXPECT_TRUE(too_large(png(16000, 16001)));
  EXPECT_TRUE(too_large(jpeg2000(16000, 16001)));
  std::string jpeg = progressive(64, 1);
  jpeg.replace(jpeg.find("\xff\xc2"s) + 5, 4, big(16001, 2) + big(16000, 2));
  EXPECT_TRUE(too_large(jpeg));
}

TEST(Images, that_the_bytes_cannot_hold_are_none) {
  for (const uint32_t compression : {1u, 5u, 8u, 32773u})
    EXPECT_TRUE(no_image(tiff(8000, 8000, compression))) << compression;
  EXPECT_TRUE(no_image(png(8000, 8000)));
  EXPECT_TRUE(no_image("P6 8000 8000 255\n" + std::string(100, 'x')));
  EXPECT_TRUE(no_image("P1 8000 8000\n" + std::string(100, '1')));
  std::string jpeg = progressive(64, 1);
  jpeg.replace(jpeg.find("\xff\xc2"s) + 5, 4, big(8000, 2) + big(8000, 2));
  EXPECT_TRUE(no_image(jpeg));
}

#if !defined(PFRT_SANITIZE_ADDRESS) && !defined(PFRT_SANITIZE_THREAD)
// Limits the address space to its present size and so many bytes more.
class LittleMemory {
 public:
  explicit LittleMemory(uint64_t bytes) {
    std::ifstream file("/proc/self/statm");
    uint64_t pages = 0;
    file >> pages;
    getrlimit(RLIMIT_AS, &before_);
    const rlimit now{pages * static_cast<uint64_t>(getpagesize()) + bytes, before_.rlim_max};
    setrlimit(RLIMIT_AS, &now);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

TEST(Images, of_many_tiles_take_no_tables_that_the_bytes_cannot_fill) {
  const auto peak = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;  // KiB
  };
  EXPECT_TRUE(no_image(jpeg2000(16, 16)));
  const long before = peak();
  EXPECT_TRUE(no_image(jpeg2000(255, 257, 1)));
  EXPECT_TRUE(no_image(jpeg2000(255, 257, 1, 3)));
  EXPECT_LT(peak() - before, 64 << 10);
}

// Decoding takes 12 MiB of pixels and 8 of coefficients. A failure loses neither, and does not make
// the bytes count as no image.
void decode_with_little_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 17);  // freed memory goes back to the system
  const std::string image = progressive(2048, 2);
  EXPECT_TRUE(ok(decode(image).failure));
  for (const uint64_t mebibytes : {6u, 14u}) {
    for (int i = 0; i < 8; ++i) {
      const LittleMemory little(mebibytes << 20);
      EXPECT_TRUE(fails(decode(image).failure, PFRT_CODE_OUT_OF_MEMORY, {"ImageDecoder"}))
          << mebibytes;
    }
  }
  const LittleMemory enough(uint64_t{64} << 20);
  EXPECT_TRUE(ok(decode(image).failure));
}

TEST(Images, without_memory_are_an_error_and_lose_none) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // in a process of its own
  EXPECT_EXIT(
      {
        decode_with_little_memory();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}
#endif

TEST(Images, in_more_scans_than_encoders_write_are_none) {
  const Decoded few = decode(progressive(512, 9));
  EXPECT_TRUE(ok(few.failure));
  EXPECT_EQ(few.dims, (std::vector<int64_t>{512, 512, 3}));
  EXPECT_EQ(few.pixels, std::vector<uint8_t>(512 * 512 * 3, 128));
  EXPECT_TRUE(no_image(progressive(512, 2000)));
}

TEST(Images, are_as_large_as_an_option_says) {
  const std::string image = "P3 2 2 255\n1 2 3 4 5 6 7 8 9 10 11 12\n";
  const Decoded whole = decode(image, {{"image.max_pixels", "4"}});
  EXPECT_TRUE(ok(whole.failure));
  EXPECT_EQ(whole.pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_TRUE(fails(decode(image, {{"image.max_pixels", "3"}}).failure, PFRT_CODE_INVALID_ARGUMENT,
                    {"2 x 2", "image.max_pixels"}));
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"image.max_pixels", "0"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"image.max_pixels"}));
}

}  // namespace
}  // namespace pfrt_test
