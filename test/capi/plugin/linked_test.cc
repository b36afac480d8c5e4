// SPDX-License-Identifier: Apache-2.0
//
// Plug-ins of a library that was opened by a symbolic link.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

namespace fs = std::filesystem;

const fs::path kLibrary = fs::canonical(PFRT_LIBRARY);
const fs::path kPlugins = kLibrary.parent_path() / "pyflame_rt" / "plugins";
constexpr const char* kCpu = "libpyflamert_provider_cpu.so";
constexpr const char* kNull = "libpyflamert_provider_null.so";

class Linked : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pfrt_linked_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = fs::canonical(name);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The plug-ins that a process finds which opens |library| with |variables| set; |searched| gets a
  // sentence with the folders.
  static std::vector<fs::path> listed(const fs::path& library, const std::string& variables = "",
                                      std::string* searched = nullptr) {
    const std::string command = "env -u PFRT_PLUGIN_PATH " + variables +
                                " '" PFRT_LIST_PLUGINS "' '" + library.string() + "'";
    FILE* out = popen(command.c_str(), "r");
    std::vector<fs::path> paths;
    char line[4096];
    while (out && fgets(line, sizeof line, out))
      paths.emplace_back(std::string(line, std::string_view(line).find('\n')));
    EXPECT_EQ(out ? pclose(out) : -1, 0) << command;
    if (paths.empty()) return paths;
    if (searched) *searched = paths.back().string();
    paths.pop_back();
    return paths;
  }
  // Expects that |paths| has |file| once, in |folder|.
  static void has(const std::vector<fs::path>& paths, const char* file, const fs::path& folder) {
    size_t count = 0;
    for (const fs::path& path : paths) {
      if (path.filename() != file) continue;
      ++count;
      EXPECT_EQ(path.parent_path(), folder);
    }
    EXPECT_EQ(count, 1u) << file;
  }

  fs::path folder_;
};

TEST_F(Linked, library_finds_the_plugins_beside_its_file) {
  const fs::path link = folder_ / "libpyflamert_c.so";
  fs::create_symlink(kLibrary, link);
  const auto direct = listed(kLibrary), linked = listed(link);
  EXPECT_FALSE(direct.empty());
  EXPECT_EQ(linked, direct);
  fs::create_directory(folder_ / "further");
  fs::create_symlink(link, folder_ / "further" / "lib.so.2");
  EXPECT_EQ(listed(folder_ / "further" / "lib.so.2"), direct);
  EXPECT_EQ(listed("libpyflamert_c.so", "LD_LIBRARY_PATH='" + folder_.string() + "'"), direct);
}

TEST_F(Linked, library_finds_those_beside_the_link_too) {
  const fs::path link = folder_ / "libpyflamert_c.so", own = folder_ / "pyflame_rt" / "plugins";
  fs::create_symlink(kLibrary, link);
  fs::create_directories(own);
  fs::copy_file(kPlugins / kNull, own / kNull);
  const auto both = listed(link);
  has(both, kNull, kPlugins);  // the folder beside the file comes first
  has(both, kCpu, kPlugins);
  const auto file = folder_ / "file";
  fs::create_directory(file);
  fs::copy_file(kLibrary, file / "lib.so");
  fs::remove(link);
  fs::create_symlink(file / "lib.so", link);
  has(listed(link), kNull, own);  // there is none beside the file
}

TEST_F(Linked, folder_is_searched_once) {
  fs::create_directory_symlink(kLibrary.parent_path(), folder_ / "lib");
  std::string searched;
  const auto paths = listed(folder_ / "lib" / kLibrary.filename(), "", &searched);
  has(paths, kCpu, kPlugins);
  EXPECT_NE(searched.find("in " + kPlugins.string() + ": "), std::string::npos) << searched;
}

}  // namespace
}  // namespace pfrt_test
