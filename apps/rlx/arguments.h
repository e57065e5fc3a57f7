// What a command takes, as the commands declare it. CLI11 parses behind it; its header takes longer to compile than a
// command does, so arguments.cpp, definitions.cpp, wrong_call.cpp and main.cpp alone open it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rlx::cli {

/// A handle of one option, flag or argument by position; each call returns it again.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument required() const;
  Argument positive() const;
  Argument not_negative() const;
  Argument between(int64_t least, int64_t most) const;
  Argument one_of(const std::vector<std::string>& words) const;
  /// Several values in one word, with commas between them.
  Argument separated_by_commas() const;
  /// Help shows the value that the variable has now.
  Argument with_default_shown() const;
  Argument excludes(const std::string& other) const;
  Argument excludes(Argument other) const;
  Argument needs(const std::string& other) const;
  Argument needs(Argument other) const;
  /// Whether the user wrote it; to be asked in the callback.
  bool given() const;

 private:
  CLI::Option* option_;
};

/// A handle of `rlx` itself or of one of its commands.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_subcommand(const std::string& name, const std::string& summary) const;
  /// "-n,--tokens" for options, one word for an argument by position. T: text, numbers, optional numbers, and lists of texts.
  template <class T>
  Argument add_option(const std::string& names, T& value, const std::string& summary) const;
  Argument add_flag(const std::string& names, bool& value, const std::string& summary) const;
  /// What the command does when it is the chosen one.
  void callback(std::function<void()> run) const;

  std::string help() const;
  CLI::App& parser() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace rlx::cli
