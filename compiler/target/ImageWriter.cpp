// Section layout and relocation over llvm::object, then the ELF file around it.
#include "compiler/target/ImageWriter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <map>

using namespace batten;
using namespace llvm;
using namespace llvm::object;

namespace {

constexpr uint64_t kCodeOffset = 4096;
constexpr uint64_t kSectionAlignment = 64;

class ImageLayout {
public:
  explicit ImageLayout(const ELFObjectFileBase &object) : object(object) {}

  Error run(Image &result) {
    if (object.getEMachine() != ELF::EM_X86_64)
      return createStringError("object for machine " + Twine(object.getEMachine()) + ", x86-64 wanted");
    if (Error error = placeSections())
      return error;
    if (Error error = relocate())
      return error;
    if (Error error = collectFunctions())
      return error;
    if (Error error = readFrames())
      return error;
    result.codeOffset = kCodeOffset;
    result.codeBytes = code.size();
    result.textBytes = textBytes;
    result.functions = std::move(functions);
    writeFile(result);
    return Error::success();
  }

private:
  /// Takes the sections that are loaded: text first, then constants in the object's order.
  Error placeSections() {
    std::vector<SectionRef> texts, constants;
    for (SectionRef section : object.sections()) {
      ELFSectionRef elf(section);
      Expected<StringRef> name = section.getName();
      if (!name)
        return name.takeError();
      if (!(elf.getFlags() & ELF::SHF_ALLOC) || section.getSize() == 0 || *name == ".eh_frame" ||
          elf.getType() == ELF::SHT_NOTE)
        continue;
      if (elf.getFlags() & (ELF::SHF_WRITE | ELF::SHF_TLS))
        return createStringError("section " + *name + " is writable; kernels have no state");
      if (elf.getType() != ELF::SHT_PROGBITS)
        return createStringError("section " + *name + " has type " + Twine(elf.getType()) + ", PROGBITS wanted");
      (section.isText() ? texts : constants).push_back(section);
    }
    for (SectionRef section : llvm::concat<SectionRef>(texts, constants)) {
      Expected<StringRef> contents = section.getContents();
      if (!contents)
        return contents.takeError();
      uint64_t begin = alignTo(code.size(), std::max<uint64_t>(kSectionAlignment, section.getAlignment().value()));
      code.resize(begin);
      code.insert(code.end(), contents->bytes_begin(), contents->bytes_end());
      placed[section.getIndex()] = begin;
      if (section.isText())
        textBytes = code.size();
    }
    if (textBytes == 0)
      return createStringError("object holds no code");
    return Error::success();
  }

  /// Offset of a symbol's target within the code.
  Expected<uint64_t> locate(SymbolRef symbol) const {
    Expected<StringRef> name = symbol.getName();
    Expected<section_iterator> section = symbol.getSection();
    Expected<uint64_t> value = symbol.getValue();
    if (!name || !section || !value)
      return joinErrors(joinErrors(name.takeError(), section.takeError()), value.takeError());
    if (*section == object.section_end())
      return createStringError("undefined symbol " + *name + ": kernels call nothing outside of themselves");
    auto found = placed.find((*section)->getIndex());
    if (found == placed.end())
      return createStringError("symbol " + *name + " is in no section that is loaded");
    return found->second + *value;
  }

  Error relocate() {
    for (SectionRef section : object.sections()) {
      Expected<section_iterator> target = section.getRelocatedSection();
      if (!target)
        return target.takeError();
      if (*target == object.section_end())
        continue;
      auto found = placed.find((*target)->getIndex());
      if (found == placed.end())
        continue;
      for (RelocationRef relocation : section.relocations())
        if (Error error = apply(relocation, found->second))
          return error;
    }
    return Error::success();
  }

  Error apply(RelocationRef relocation, uint64_t sectionBegin) {
    SmallString<32> type;
    relocation.getTypeName(type);
    if (relocation.getSymbol() == object.symbol_end())
      return createStringError("relocation " + type + " without a symbol");
    Expected<uint64_t> symbol = locate(*relocation.getSymbol());
    if (!symbol)
      return symbol.takeError();
    Expected<int64_t> addend = ELFRelocationRef(relocation).getAddend();
    if (!addend)
      return addend.takeError();
    uint64_t place = sectionBegin + relocation.getOffset();
    int64_t distance = static_cast<int64_t>(*symbol + static_cast<uint64_t>(*addend) - place);
    uint64_t width = relocation.getType() == ELF::R_X86_64_PC64 ? 8 : 4;
    if (place + width > code.size())
      return createStringError("relocation " + type + " past the end of its section");
    switch (relocation.getType()) {
    case ELF::R_X86_64_PC32:
    case ELF::R_X86_64_PLT32:
      if (!isInt<32>(distance))
        return createStringError("relocation " + type + " over " + Twine(distance) + " bytes doesn't fit");
      support::endian::write32le(&code[place], static_cast<uint32_t>(distance));
      return Error::success();
    case ELF::R_X86_64_PC64:
      support::endian::write64le(&code[place], static_cast<uint64_t>(distance));
      return Error::success();
    default:
      return createStringError("relocation " + type + " depends on the load address or on a loader");
    }
  }

  Error collectFunctions() {
    for (ELFSymbolRef symbol : object.symbols()) {
      if (symbol.getELFType() != ELF::STT_FUNC)
        continue;
      Expected<StringRef> name = symbol.getName();
      if (!name)
        return name.takeError();
      Expected<uint64_t> offset = locate(symbol);
      if (!offset)
        return offset.takeError();
      functions.push_back({name->str(), kCodeOffset + *offset, symbol.getSize(), 0});
    }
    llvm::sort(functions, [](const ImageFunction &a, const ImageFunction &b) { return a.offset < b.offset; });
    return Error::success();
  }

  /// .stack_sizes: for each function its address (a relocation) and a ULEB128 size.
  Error readFrames() {
    size_t known = 0;
    for (SectionRef section : object.sections()) {
      Expected<section_iterator> target = section.getRelocatedSection();
      if (!target)
        return target.takeError();
      if (*target == object.section_end())
        continue;
      Expected<StringRef> name = (*target)->getName();
      if (!name)
        return name.takeError();
      if (*name != ".stack_sizes")
        continue;
      Expected<StringRef> contents = (*target)->getContents();
      if (!contents)
        return contents.takeError();
      for (RelocationRef relocation : section.relocations()) {
        Expected<uint64_t> symbol = locate(*relocation.getSymbol());
        Expected<int64_t> addend = ELFRelocationRef(relocation).getAddend();
        if (!symbol || !addend)
          return joinErrors(symbol.takeError(), addend.takeError());
        if (relocation.getOffset() + 8 >= contents->size())
          return createStringError("section .stack_sizes is cut short");
        uint64_t offset = kCodeOffset + *symbol + static_cast<uint64_t>(*addend);
        for (ImageFunction &function : functions)
          if (function.offset == offset) {
            function.frameBytes =
                decodeULEB128(contents->bytes_begin() + relocation.getOffset() + 8, nullptr, contents->bytes_end());
            ++known;
          }
      }
    }
    if (known != functions.size())
      return createStringError("stack frames of " + Twine(known) + " functions are known, of " +
                               Twine(functions.size()) + " wanted");
    return Error::success();
  }

  template <typename Record> static void append(std::vector<uint8_t> &bytes, const Record &record) {
    const auto *begin = reinterpret_cast<const uint8_t *>(&record);
    bytes.insert(bytes.end(), begin, begin + sizeof(Record));
  }

  static uint32_t appendString(std::vector<uint8_t> &table, StringRef text) {
    uint32_t offset = static_cast<uint32_t>(table.size());
    table.insert(table.end(), text.bytes_begin(), text.bytes_end());
    table.push_back(0);
    return offset;
  }

  /// Records are written as they are in memory: the host is little endian, as the runtime's hosts are.
  void writeFile(Image &result) const {
    static_assert(endianness::native == endianness::little);
    std::vector<uint8_t> symbols, names{0}, sectionNames{0};
    append(symbols, ELF::Elf64_Sym{});
    for (const ImageFunction &function : result.functions) {
      ELF::Elf64_Sym symbol{};
      symbol.st_name = appendString(names, function.name);
      symbol.setBindingAndType(ELF::STB_GLOBAL, ELF::STT_FUNC);
      symbol.st_shndx = 1;
      symbol.st_value = function.offset;
      symbol.st_size = function.bytes;
      append(symbols, symbol);
    }

    uint64_t rodataBegin = alignTo(textBytes, kSectionAlignment);
    bool hasRodata = code.size() > rodataBegin;
    std::vector<ELF::Elf64_Shdr> headers(1);
    std::vector<uint8_t> &file = result.bytes;
    file.assign(kCodeOffset, 0);
    file.insert(file.end(), code.begin(), code.end());
    auto section = [&](StringRef name, uint32_t type, uint64_t flags, uint64_t offset, uint64_t size) -> auto & {
      ELF::Elf64_Shdr header{};
      header.sh_name = appendString(sectionNames, name);
      header.sh_type = type;
      header.sh_flags = flags;
      header.sh_addr = flags & ELF::SHF_ALLOC ? offset : 0;
      header.sh_offset = offset;
      header.sh_size = size;
      header.sh_addralign = flags & ELF::SHF_ALLOC ? kSectionAlignment : 8;
      headers.push_back(header);
      return headers.back();
    };
    auto table = [&](StringRef name, uint32_t type, const std::vector<uint8_t> &bytes) -> auto & {
      file.resize(alignTo(file.size(), 8));
      uint64_t offset = file.size();
      file.insert(file.end(), bytes.begin(), bytes.end());
      return section(name, type, 0, offset, bytes.size());
    };
    section(".text", ELF::SHT_PROGBITS, ELF::SHF_ALLOC | ELF::SHF_EXECINSTR, kCodeOffset, textBytes);
    if (hasRodata)
      section(".rodata", ELF::SHT_PROGBITS, ELF::SHF_ALLOC, kCodeOffset + rodataBegin, code.size() - rodataBegin);
    auto &symtab = table(".symtab", ELF::SHT_SYMTAB, symbols);
    symtab.sh_link = static_cast<uint32_t>(headers.size());
    symtab.sh_info = 1; // the first global one
    symtab.sh_entsize = sizeof(ELF::Elf64_Sym);
    table(".strtab", ELF::SHT_STRTAB, names);
    // The name must be in the table before the table is written.
    uint32_t own = appendString(sectionNames, ".shstrtab");
    auto &last = table(".shstrtab", ELF::SHT_STRTAB, sectionNames);
    last.sh_name = own;
    file.resize(alignTo(file.size(), 8));
    uint64_t headersOffset = file.size();
    for (const ELF::Elf64_Shdr &header : headers)
      append(file, header);

    ELF::Elf64_Ehdr elf{};
    std::memcpy(elf.e_ident, ELF::ElfMagic, 4);
    elf.e_ident[ELF::EI_CLASS] = ELF::ELFCLASS64;
    elf.e_ident[ELF::EI_DATA] = ELF::ELFDATA2LSB;
    elf.e_ident[ELF::EI_VERSION] = ELF::EV_CURRENT;
    elf.e_type = ELF::ET_DYN;
    elf.e_machine = ELF::EM_X86_64;
    elf.e_version = ELF::EV_CURRENT;
    elf.e_phoff = sizeof(ELF::Elf64_Ehdr);
    elf.e_shoff = headersOffset;
    elf.e_ehsize = sizeof(ELF::Elf64_Ehdr);
    elf.e_phentsize = sizeof(ELF::Elf64_Phdr);
    elf.e_phnum = 2;
    elf.e_shentsize = sizeof(ELF::Elf64_Shdr);
    elf.e_shnum = static_cast<uint16_t>(headers.size());
    elf.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
    ELF::Elf64_Phdr load{};
    load.p_type = ELF::PT_LOAD;
    load.p_flags = ELF::PF_R | ELF::PF_X;
    load.p_offset = load.p_vaddr = load.p_paddr = kCodeOffset;
    load.p_filesz = load.p_memsz = code.size();
    load.p_align = kCodeOffset;
    ELF::Elf64_Phdr stack{};
    stack.p_type = ELF::PT_GNU_STACK;
    stack.p_flags = ELF::PF_R | ELF::PF_W;
    std::vector<uint8_t> head;
    append(head, elf);
    append(head, load);
    append(head, stack);
    std::copy(head.begin(), head.end(), file.begin());
  }

  const ELFObjectFileBase &object;
  std::map<uint64_t, uint64_t> placed; ///< section index to offset in code
  std::vector<uint8_t> code;
  uint64_t textBytes = 0;
  std::vector<ImageFunction> functions;
};

} // namespace

const ImageFunction *Image::find(StringRef name) const {
  for (const ImageFunction &function : functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

Expected<Image> batten::writeImage(ArrayRef<uint8_t> object) {
  MemoryBufferRef buffer(StringRef(reinterpret_cast<const char *>(object.data()), object.size()), "kernels");
  Expected<std::unique_ptr<ObjectFile>> file = ObjectFile::createELFObjectFile(buffer);
  if (!file)
    return file.takeError();
  auto *elf = dyn_cast<ELFObjectFileBase>(file->get());
  if (!elf)
    return createStringError("object is no ELF file");
  Image image;
  if (Error error = ImageLayout(*elf).run(image))
    return std::move(error);
  return image;
}
