// rlx chat: a conversation with a language model.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>

#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "rlx/llm/conversation.h"

namespace rlx::cli {

namespace {

struct ChatArguments {
  RunArguments run;
  SamplingArguments sampling{0.7};
  GrammarArguments grammar;
  std::string system;
  int64_t tokens = 512;
};

// Ctrl-C ends the answer; with no answer under way it ends the program.
std::atomic<bool> answering{false}, interrupted{false};
void on_interrupt(int number) {
  if (answering) {
    interrupted = true;
    return;
  }
  std::signal(number, SIG_DFL);
  std::raise(number);
}

constexpr const char* kHelp =
    "/clear     forget the conversation\n"
    "/history   show the messages\n"
    "/retry     answer the last message again, with another seed\n"
    "/temp X    set the temperature\n"
    "/tokens N  set the length of answers\n"
    "/stats     speed of the last answer\n"
    "/quit      leave (also Ctrl-D)\n";

class Chat {
 public:
  explicit Chat(const ChatArguments& a)
      : model_(llm::LanguageModel::open(model_path(a.run.model), a.run.options())),
        talk_(model_, a.system,
              {.max_tokens = a.tokens, .sampling = a.sampling.read(), .grammar = a.grammar.read()}),
        shown_(isatty(STDIN_FILENO) != 0) {}

  void run() {
    const auto before = std::signal(SIGINT, on_interrupt);
    if (shown_) std::fprintf(stderr, "/help lists the commands\n");
    for (std::string line; ask_line(line);) {
      if (line.empty()) continue;
      if (line == "/quit" || line == "/exit") break;
      if (line[0] == '/')
        command(line);
      else
        answer(line);
    }
    std::signal(SIGINT, before);
  }

 private:
  bool ask_line(std::string& line) {
    if (shown_) {
      print("> ");
      flush_output();
    }
    return bool(std::getline(std::cin, line));
  }

  void answer(const std::string& message) {
    last_ = message;
    answering = true;
    interrupted = false;
    const llm::Generation g = talk_.ask(message, [](const llm::GeneratedToken& t) {
      print(t.text);
      flush_output();
      return !interrupted.load();
    });
    answering = false;
    print(g.finish == llm::Finish::context_full ? "\n[the context is full; /clear starts anew]\n" : "\n");
    flush_output();
    stats_ = speed_line(g);
    ++talk_.options().sampling.seed;  // another draw for the next answer
  }

  void command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space), value = space == line.npos ? "" : line.substr(space + 1);
    if (name == "/help") {
      print(kHelp);
    } else if (name == "/clear") {
      talk_.clear();
    } else if (name == "/history") {
      show_history();
    } else if (name == "/stats") {
      print(stats_.empty() ? "no answer yet\n" : stats_ + "\n");
    } else if (name == "/retry") {
      last_.empty() ? print("/retry: there is no message yet\n") : retry();
    } else if (name == "/temp") {
      if (const auto t = number_of(name, value, 0)) talk_.options().sampling.temperature = *t;
    } else if (name == "/tokens") {
      if (const auto n = number_of(name, value, 1)) talk_.options().max_tokens = int64_t(*n);
    } else {
      print("unknown command '" + name + "'; /help lists them\n");
    }
  }

  // The number behind a command; one that is none, or is below `least`, is told.
  static std::optional<double> number_of(const std::string& name, const std::string& value, double least) {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (!value.empty() && *end == '\0' && number >= least && number <= 1e9) return number;
    print(cat(name, ": '", value, "' is not a number from ", int64_t(least), " on\n"));
    return std::nullopt;
  }

  void retry() {
    talk_.forget_last();
    answer(last_);
  }

  void show_history() const {
    for (const llm::Message& m : talk_.messages()) print(m.role + ": " + m.content + "\n");
  }

  llm::LanguageModel model_;
  llm::Conversation talk_;
  bool shown_;
  std::string last_, stats_;
};

}  // namespace

void add_chat(Command app) {
  const auto a = std::make_shared<ChatArguments>();
  Command command = app.add_subcommand("chat", "talk with a language model");
  a->run.add(command);
  command.add_option("--system", a->system, "system message before the conversation");
  command.add_option("-n,--tokens", a->tokens, "at most so many tokens for an answer").positive();
  a->sampling.add(command);
  a->grammar.add(command);
  command.callback([a] { Chat(*a).run(); });
}

}  // namespace rlx::cli
