// The words of CUDA C++ that no macro can take, and the list of a module's entries.
#include "scan.h"
#include "text.h"

namespace emulated {
namespace {

struct Entry {
  std::string name, most_threads = "0", cluster = "1, 1, 1";
};

// __global__ void __launch_bounds__(256) __cluster_dims__(2, 1, 1) name(..
Entry entry_at(const std::string& text, size_t at) {
  Entry out;
  while (at < text.size()) {
    at = behind_space(text, at);
    if (!in_word(text[at])) break;
    const size_t begin = at;
    while (at < text.size() && in_word(text[at])) ++at;
    const std::string word = text.substr(begin, at - begin);
    const size_t open = behind_space(text, at);
    if (text[open] != '(') continue;
    const size_t end = behind_bracket(text, open);
    const std::vector<std::string> given = split_outside(text.substr(open + 1, end - open - 2), ',');
    if (word == "__launch_bounds__") {
      if (!given.empty()) out.most_threads = given[0];
    } else if (word == "__cluster_dims__") {
      out.cluster.clear();
      for (size_t i = 0; i < 3; ++i)
        out.cluster += (i ? ", " : "") + (i < given.size() ? given[i] : std::string("1"));
    } else {
      out.name = word;
      return out;
    }
    at = end;
  }
  throw NotEmulated("a __global__ function without a name");
}

// `extern "C"` of kernels goes: a module's entries are found by a list. Declarations of what the prelude has go with it.
std::string without_linkage(const std::string& text) {
  std::string out;
  size_t from = 0;
  for (;;) {
    const size_t at = find_word(text, "extern", from);
    if (at == std::string::npos) return out + text.substr(from);
    size_t next = behind_space(text, at + 6);
    out += text.substr(from, at - from);
    if (text.compare(next, 3, "\"C\"") != 0) {
      out += "extern";
      from = at + 6;
      continue;
    }
    next += 3;
    const size_t body = text.find('{', next), end = text.find(';', next);
    from = end < body ? end + 1 : next;
  }
}

// extern __shared__ alignas(1024) uint4 name[]; is a pointer to where the launch's shared memory begins.
std::string with_dynamic_shared(const std::string& text, std::string& alignment) {
  std::string out;
  size_t from = 0;
  for (;;) {
    const size_t at = find_word(text, "extern", from);
    if (at == std::string::npos) return out + text.substr(from);
    const size_t end = text.find(';', at);
    std::string declaration = text.substr(at + 6, end - at - 6);
    const size_t shared = declaration.find("__shared__");
    out += text.substr(from, at - from);
    if (shared == std::string::npos) {
      out += "extern";
      from = at + 6;
      continue;
    }
    declaration.erase(shared, 10);
    for (const char* word : {"alignas", "__align__"}) {
      const size_t align = find_word(declaration, word, 0);
      if (align == std::string::npos) continue;
      const size_t open = declaration.find('(', align), close = behind_bracket(declaration, open);
      alignment = declaration.substr(open, close - open);
      declaration.erase(align, close - align);
    }
    const std::string plain = trimmed(declaration.substr(0, declaration.find('[')));
    size_t name = plain.size();
    while (name > 0 && in_word(plain[name - 1])) --name;
    const std::string type = trimmed(plain.substr(0, name));
    out += type + "* const " + plain.substr(name) + " = reinterpret_cast<" + type +
           "*>(emulated_machine->dynamic)";
    from = end;
  }
}

}  // namespace

std::string as_module(const std::string& given) {
  std::string alignment = "16";
  const std::string text = without_asm(with_dynamic_shared(without_linkage(given), alignment));
  std::string list;
  for (size_t at = 0; (at = find_word(text, "__global__", at)) != std::string::npos; at += 10) {
    const Entry e = entry_at(text, at + 10);
    list += "extern \"C\" __attribute__((visibility(\"default\"))) emulated::Kernel emulated_kernel_" +
            e.name + "() { return emulated::Entry<&" + e.name + ">::with(" + e.most_threads + ", {" +
            e.cluster + "}, " + alignment + "); }\n";
  }
  if (list.empty()) throw NotEmulated("a text without a __global__ function");
  // Without a name of its own the space keeps statics of templates in the one section of shared memory.
  return "#include \"prelude.h\"\nnamespace {\n" + text + "\n}\n" + list;
}

}  // namespace emulated
