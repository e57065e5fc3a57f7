#include "rlx/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "rlx/base/output_file.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;
using test::message_of, test::Scratch;

mode_t mode_of(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(HostileFile, pipes_and_devices_are_refused_at_once) {
  const Scratch folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string refusal = "file: '" + pipe + "' is not a regular file; it is a pipe";
  EXPECT_EQ(message_of([&] { MappedFile::open(pipe); }), refusal);
  EXPECT_EQ(message_of([&] { read_file(pipe); }), refusal);
  EXPECT_EQ(message_of([&] { read_file("/dev/zero"); }),
            "file: '/dev/zero' is not a regular file; it is a device");
  EXPECT_EQ(message_of([&] { MappedFile::open("/dev/null"); }),
            "file: '/dev/null' is not a regular file; it is a device");
  EXPECT_EQ(message_of([&] { read_file(folder.path()); }),
            "file: '" + folder.path() + "' is not a regular file; it is a folder");
  EXPECT_EQ(path_kind(pipe), PathKind::other);
}

TEST(HostileFile, a_loop_of_links_is_an_error_that_names_it) {
  const Scratch folder;
  fs::create_symlink("b", folder.path("a"));
  fs::create_symlink("a", folder.path("b"));
  EXPECT_EQ(message_of([&] { path_kind(folder.path("a")); }),
            "file: cannot look at '" + folder.path("a") + "': Too many levels of symbolic links");
  EXPECT_EQ(path_kind(folder.path("c")), PathKind::missing);
  EXPECT_EQ(path_kind(folder.path()), PathKind::folder);
}

TEST(HostileFile, a_mapped_file_that_becomes_shorter_is_an_error_that_names_it) {
  const Scratch folder;
  const std::string path = folder.path("large"), other = folder.path("other");
  const size_t page = size_t(::sysconf(_SC_PAGESIZE)), size = 16 * page + 100;
  write_file(path, std::string(size, 'x'));
  write_file(other, std::string(size, 'y'));
  const MappedFile file = MappedFile::open(path), untouched = MappedFile::open(other);
  EXPECT_EQ(file.text()[size - 1], 'x');
  ASSERT_EQ(::truncate(path.c_str(), off_t(page)), 0);
  check_mapped_files();  // nothing was read since
  EXPECT_EQ(file.text()[0], 'x');
  EXPECT_EQ(file.text()[5 * page], '\0');
  EXPECT_EQ(file.text()[size - 1], '\0');
  const std::string message = cat("file: '", path, "' became shorter while it was read: it had ", size,
                                  " bytes and has ", page, " now");
  EXPECT_EQ(message_of([] { check_mapped_files(); }), message);
  EXPECT_EQ(message_of([&] { check_mapped(file.bytes().subspan(3 * page, 10)); }), message);
  EXPECT_EQ(message_of([&] { check_mapped(untouched.bytes()); }), "no error");
  EXPECT_EQ(untouched.text()[5 * page], 'y');
}

TEST(HostileFile, a_mapping_that_is_gone_is_told_of_no_more) {
  const Scratch folder;
  const std::string path = folder.path("large");
  write_file(path, std::string(1 << 16, 'x'));
  {
    const MappedFile file = MappedFile::open(path);
    ASSERT_EQ(::truncate(path.c_str(), 0), 0);
    touch_mapped(file.bytes());
    EXPECT_NE(message_of([] { check_mapped_files(); }), "no error");
  }
  EXPECT_EQ(message_of([] { check_mapped_files(); }), "no error");
  write_file(path, std::string(1 << 16, 'z'));
  const MappedFile again = MappedFile::open(path);
  touch_mapped(again.bytes());
  EXPECT_EQ(message_of([] { check_mapped_files(); }), "no error");
}

TEST(HostileFile, writing_out_of_a_file_that_became_shorter_names_the_input) {
  const Scratch folder;
  const std::string path = folder.path("in");
  write_file(path, std::string(1 << 16, 'x'));
  const MappedFile file = MappedFile::open(path);
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  EXPECT_EQ(message_of([&] { write_file(folder.path("out"), file.bytes()); }),
            "file: '" + path + "' became shorter while it was read: it had 65536 bytes and has 100 now");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"in"});
}

TEST(HostileFileDeathTest, other_bus_errors_still_end_the_process) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes the signal and ends the process in its own way";
#endif
  const Scratch folder;
  write_file(folder.path("x"), "x");
  const MappedFile file = MappedFile::open(folder.path("x"));
  EXPECT_EXIT(
      {
        ::raise(SIGBUS);
        ::_exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(HostileFile, a_full_disk_is_an_error) {
  EXPECT_EQ(message_of([] { write_file("/dev/full", "x"); }),
            "file: cannot write '/dev/full': No space left on device");
}

TEST(OutputFile, follows_no_link_and_cannot_be_foreseen) {
  const Scratch folder;
  const std::string victim = folder.path("victim"), out = folder.path("out");
  write_file(victim, "precious");
  fs::create_symlink("victim", out + ".tmp" + std::to_string(::getpid()));
  fs::create_symlink("victim", out);
  write_file(out, "new");
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_FALSE(fs::is_symlink(out));
  EXPECT_EQ(read_file(out), "new");
}

TEST(OutputFile, a_replaced_file_keeps_its_permissions) {
  const Scratch folder;
  const std::string path = folder.path("secret"), fresh = folder.path("fresh");
  write_file(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  write_file(path, "new");
  EXPECT_EQ(mode_of(path), mode_t(0600));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  write_file(path, "new");
  EXPECT_EQ(mode_of(path), mode_t(0640));
  const mode_t mask = ::umask(027);
  write_file(fresh, "x");
  ::umask(mask);
  EXPECT_EQ(mode_of(fresh), mode_t(0640));
}

TEST(OutputFile, unfinished_leaves_the_old_file_and_nothing_else) {
  const Scratch folder;
  const std::string path = folder.path("x");
  write_file(path, "old");
  {
    OutputFile out(path);
    out.write("half");
    EXPECT_EQ(names_in(folder.path()).size(), 2u);
    EXPECT_EQ(read_file(path), "old");
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"x"});
  EXPECT_EQ(read_file(path), "old");
}

TEST(OutputFile, what_is_unfinished_can_be_removed_before_the_process_ends) {
  const Scratch folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGTERM, [](int) {
      remove_unfinished_files();
      ::_exit(7);
    });
    OutputFile first(folder.path("a")), second(folder.path("b"));
    first.write("half");
    second.write("half");
    OutputFile third(folder.path("c"));
    third.write("whole");
    third.finish();
    ::raise(SIGTERM);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"c"});
}

TEST(OutputFile, folders_and_long_names) {
  const Scratch folder;
  EXPECT_EQ(message_of([&] { write_file(folder.path(), "x"); }),
            "file: cannot write '" + folder.path() + "': it is a folder");
  EXPECT_EQ(message_of([&] { write_file(folder.path("none/x"), "x"); }),
            "file: cannot create '" + folder.path("none/x") + "': No such file or directory");
  const std::string longest = folder.path(std::string(255, 'n'));
  write_file(longest, "x");
  EXPECT_EQ(read_file(longest), "x");
}

TEST(OutputFile, a_pipe_is_written_directly) {
  const Scratch folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(pipe, "through");
  char got[16] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 7);
  ::close(reader);
  EXPECT_EQ(std::string(got), "through");
}

TEST(File, makes_folders_with_those_above_them) {
  const Scratch folder;
  const std::string path = folder.path("a/b/c");
  make_folders(path);
  make_folders(path);
  EXPECT_EQ(path_kind(path), PathKind::folder);
  write_file(folder.path("x"), "");
  EXPECT_EQ(message_of([&] { make_folders(folder.path("x/y")); }),
            "file: cannot make the folder '" + folder.path("x/y") + "': Not a directory");
}

TEST(File, reads_up_to_a_limit) {
  const Scratch folder;
  write_file(folder.path("x"), "12345");
  EXPECT_EQ(read_file(folder.path("x"), 5), "12345");
  EXPECT_EQ(message_of([&] { read_file(folder.path("x"), 4); }),
            "file: '" + folder.path("x") + "' is larger than 4 bytes");
  EXPECT_FALSE(read_file("/proc/self/status").empty());
  EXPECT_EQ(message_of([&] { read_file("/proc/self/status", 4); }),
            "file: '/proc/self/status' is larger than 4 bytes");
}

}  // namespace
}  // namespace rlx
