#include "apps/rlx/arguments.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "rlx/base/text.h"

namespace rlx::cli {
namespace {

// The checks of CLI11 itself tell their bounds as numbers of 300 digits. `name` stands in help.
template <class Number, class Holds>
CLI::Validator check_number(const std::string& name, const std::string& wanted, Holds holds) {
  const auto check = [wanted, holds](const std::string& text) {
    Number value{};
    const bool fits = CLI::detail::lexical_cast(text, value) && holds(value);
    return fits ? std::string() : cat("'", text, "' is not ", wanted);
  };
  return CLI::Validator(check, name);
}

}  // namespace

Argument Argument::required() const {
  option_->required();
  return *this;
}

Argument Argument::positive() const {
  option_->check(check_number<double>("POSITIVE", "a number above 0", [](double v) { return v > 0; }));
  return *this;
}

Argument Argument::not_negative() const {
  option_->check(
      check_number<double>("NONNEGATIVE", "a number of 0 or more", [](double v) { return v >= 0; }));
  return *this;
}

Argument Argument::between(int64_t least, int64_t most) const {
  const std::string bounds = cat("INT in [", least, " - ", most, "]");
  option_->check(check_number<int64_t>(bounds, cat("a whole number from ", least, " to ", most),
                                       [=](int64_t v) { return v >= least && v <= most; }));
  return *this;
}

Argument Argument::one_of(const std::vector<std::string>& words) const {
  option_->check(CLI::IsMember(words));
  return *this;
}

Argument Argument::separated_by_commas() const {
  option_->delimiter(',');
  return *this;
}

Argument Argument::with_default_shown() const {
  option_->capture_default_str();
  return *this;
}

Argument Argument::excludes(const std::string& other) const {
  option_->excludes(other);
  return *this;
}

Argument Argument::excludes(Argument other) const {
  option_->excludes(other.option_);
  return *this;
}

Argument Argument::needs(const std::string& other) const {
  option_->needs(other);
  return *this;
}

Argument Argument::needs(Argument other) const {
  option_->needs(other.option_);
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& summary) const {
  return Command(app_->add_subcommand(name, summary));
}

bool Argument::given() const { return option_->count() > 0; }

template <class T>
Argument Command::add_option(const std::string& names, T& value, const std::string& summary) const {
  return Argument(app_->add_option(names, value, summary));
}

template Argument Command::add_option(const std::string&, std::string&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::vector<std::string>&,
                                      const std::string&) const;
template Argument Command::add_option(const std::string&, int&, const std::string&) const;
template Argument Command::add_option(const std::string&, int64_t&, const std::string&) const;
template Argument Command::add_option(const std::string&, uint64_t&, const std::string&) const;
template Argument Command::add_option(const std::string&, double&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::optional<int64_t>&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::optional<uint64_t>&, const std::string&) const;
template Argument Command::add_option(const std::string&, std::optional<double>&, const std::string&) const;

Argument Command::add_flag(const std::string& names, bool& value, const std::string& summary) const {
  return Argument(app_->add_flag(names, value, summary));
}

void Command::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

std::string Command::help() const {
  if (app_->get_parent() != nullptr) return app_->help("rlx");
  // App::help would describe the command that was chosen.
  return app_->get_formatter()->make_help(app_, app_->get_name(), CLI::AppFormatMode::Normal);
}

}  // namespace rlx::cli
