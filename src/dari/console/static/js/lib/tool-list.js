/** The list of tools as a person reads it: by server and part, found by typing in English or Korean. */

/** Parts of Dari by the beginning of their tools' names; `words` are found too. */
const PARTS = [
  { id: "proxy", prefix: "crab_", words: "crab proxy http traffic 프록시 트래픽 요청 응답" },
  { id: "terminal", prefix: "crux_", words: "crux terminal pane shell 터미널 패널 명령" },
  { id: "knowledge", prefix: "kebab_", words: "kebab knowledge search documents 지식 문서 검색" },
  { id: "code", prefix: "crewx_tools_", words: "crewx code lint format test refactor 코드 검사 정리" },
  { id: "dari", prefix: "dari_", words: "dari hub console 다리 콘솔 설정" },
];

const INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ";

/** For comparison: one spelling of each letter, small. Not NFKC, which makes other letters of single consonants. */
export const fold = (text) => String(text).normalize("NFC").toLowerCase();

/** The first consonants of Hangul: 터미널 → ㅌㅁㄴ. */
export function initialsOf(text) {
  let initials = "";
  for (const letter of text) {
    const code = letter.codePointAt(0) - 0xac00;
    initials += code >= 0 && code < 11172 ? INITIALS[Math.floor(code / 588)] : letter;
  }
  return initials;
}

/** Entries of a list of tools. `origins` says by name which server a tool is of and how it is called there. */
export function listTools(tools, origins = new Map()) {
  return tools.map((tool, index) => {
    const problem = whatIsWrong(tool);
    const name = typeof tool?.name === "string" ? tool.name : "";
    const origin = origins.get(name);
    const part = origin?.server ? null : PARTS.find((one) => name.startsWith(one.prefix));
    const server = origin?.server || (part ? "" : guessServer(name));
    const group = server ? `server:${server}` : (part?.id ?? "other");
    const title = textOf(tool?.title) || textOf(tool?.annotations?.title);
    const description = textOf(tool?.description);
    const own = origin?.tool || (server && name.startsWith(`${server}__`) ? name.slice(server.length + 2) : name);
    const found = fold([name, own, title, server, part?.words ?? "", description.slice(0, 2000)].join("\n"));
    return {
      index,
      tool,
      name,
      own,
      title,
      description,
      server,
      group,
      problem,
      scope: origin?.scope ?? "",
      found,
      short: fold(`${own}\n${title}`),
    };
  });
}

const textOf = (value) => (typeof value === "string" ? value : "");
const guessServer = (name) => (name.includes("__") ? name.slice(0, name.indexOf("__")) : "");

/** Why a listed tool cannot be used as it is; "" where it can. */
export function whatIsWrong(tool) {
  if (typeof tool !== "object" || tool === null || typeof tool.name !== "string" || !tool.name) return "name";
  const schema = tool.inputSchema;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return "inputSchema";
  if (schema.type !== undefined && schema.type !== "object") return "type";
  if (tool.outputSchema !== undefined && (typeof tool.outputSchema !== "object" || tool.outputSchema === null)) return "outputSchema";
  return "";
}

/** How well an entry fits what was typed; 0 where it does not. Every word has to be there. */
export function score(query, entry, isLoose = false) {
  let total = 1;
  for (const word of fold(query).split(/\s+/).filter(Boolean)) {
    const at = entry.short.indexOf(word);
    if (at === 0) total += 100;
    else if (at > 0) total += /[\W_]/.test(entry.short[at - 1]) ? 60 : 40;
    else if (entry.found.includes(word)) total += 10;
    else if (isInitials(word) && (entry.initials ??= initialsOf(entry.found)).includes(word)) total += 8;
    else if (isLoose && isSubsequence(word, entry.short)) total += 2;
    else return 0;
  }
  return total - Math.min(entry.name.length, 60) / 100;
}

const isInitials = (word) => [...word].every((letter) => INITIALS.includes(letter));

function isSubsequence(word, text) {
  let at = 0;
  for (const letter of word) {
    at = text.indexOf(letter, at) + 1;
    if (!at) return false;
  }
  return true;
}

/** Entries that fit, best first; all in their order where nothing was typed. Letters in order are enough where no word fits. */
export function findTools(query, entries) {
  if (!query.trim()) return entries;
  const fitting = (isLoose) => entries.map((entry) => [score(query, entry, isLoose), entry]).filter(([points]) => points > 0);
  const scored = fitting(false);
  return (scored.length ? scored : fitting(true)).sort((a, b) => b[0] - a[0] || a[1].index - b[1].index).map(([, entry]) => entry);
}

/** [{id, entries}]: parts of Dari in their order, then servers as they come. */
export function groupTools(entries) {
  const groups = new Map(PARTS.map((part) => [part.id, []]));
  for (const entry of entries) {
    if (!groups.has(entry.group)) groups.set(entry.group, []);
    groups.get(entry.group).push(entry);
  }
  return [...groups].filter(([, inside]) => inside.length).map(([id, inside]) => ({ id, entries: inside }));
}

/** What a tool says of itself: [name, is it a warning]. Defaults as the protocol has them. */
export function annotationsOf(tool) {
  const hints = typeof tool?.annotations === "object" && tool.annotations !== null ? tool.annotations : {};
  const found = [];
  if (hints.readOnlyHint === true) found.push(["readOnly", false]);
  else if (hints.destructiveHint === true) found.push(["destructive", true]);
  if (hints.idempotentHint === true && hints.readOnlyHint !== true) found.push(["idempotent", false]);
  if (hints.openWorldHint === true) found.push(["openWorld", false]);
  return found;
}

const RESERVED = ["resources", "prompts", "history", "-"];

/** The address of a tool's page. */
export const toolPath = (name) => `/tools/${RESERVED.includes(name) ? "-/" : ""}${encodeURIComponent(name)}`;

/** The fields of a URI template: `file:///{path}{?a,b}` → path, a, b. */
export function templateFields(template) {
  const names = [...String(template).matchAll(/\{[+#./;?&]?([^{}]*)\}/g)].flatMap((found) => found[1].split(","));
  return [...new Set(names.map((name) => name.replace(/(\*|:\d+)$/, "").trim()).filter(Boolean))];
}

/** RFC 6570, as far as templates of resources go: reserved, fragment, path, label and query forms. */
export function fillTemplate(template, values) {
  const reserved = (text) => encodeURI(text).replaceAll("%5B", "[").replaceAll("%5D", "]");
  return String(template).replace(/\{([+#./;?&]?)([^{}]*)\}/g, (_, operator, list) => {
    const named = ";?&".includes(operator) && operator !== "";
    const encode = operator === "+" || operator === "#" ? reserved : encodeURIComponent;
    const parts = list.split(",").flatMap((spec) => {
      const name = spec.replace(/(\*|:\d+)$/, "").trim();
      const value = Object.hasOwn(values, name) ? String(values[name]) : "";
      if (value === "") return [];
      const limit = /:(\d+)$/.exec(spec);
      const text = encode(limit ? [...value].slice(0, Number(limit[1])).join("") : value);
      return [named ? `${encodeURIComponent(name)}=${text}` : text];
    });
    if (!parts.length) return "";
    const joint = { "?": "&", "&": "&", ";": ";", "/": "/", ".": "." }[operator] ?? ",";
    return (operator === "+" ? "" : operator) + parts.join(joint);
  });
}
