// HAR files, made of parts and cut into parts. Pure.

export const PART_CHARS = 512 * 1024;
export const MAX_ENTRY_CHARS = 8 * 1024 * 1024;

/** Pieces of a HAR 1.2 file from parts of entries that came newest first; for a Blob. */
export function harPieces(parts, version) {
  const entries = parts.flat().reverse();
  const creator = JSON.stringify({ name: "dari", version });
  const pieces = [`{"log":{"version":"1.2","creator":${creator},"pages":[],"entries":[`];
  entries.forEach((entry, i) => pieces.push(i ? ",\n" : "\n", entry));
  pieces.push("\n]}}\n");
  return pieces;
}

/** HAR texts of at most PART_CHARS each (one long entry alone may have more), and how many entries are too long to send. */
export function splitHar(text) {
  const entries = JSON.parse(text.replace(/^\ufeff/, ""))?.log?.entries;
  if (!Array.isArray(entries)) throw new Error("no log.entries");
  const batches = [];
  let batch = [];
  let size = 0;
  let tooLong = 0;
  const flush = () => {
    if (batch.length) batches.push({ text: `{"log":{"entries":[${batch.join(",")}]}}`, count: batch.length });
    [batch, size] = [[], 0];
  };
  for (const entry of entries) {
    const one = JSON.stringify(entry);
    if (one.length > MAX_ENTRY_CHARS) {
      tooLong++;
      continue;
    }
    if (size && size + one.length > PART_CHARS) flush();
    batch.push(one);
    size += one.length;
  }
  flush();
  return { batches, tooLong, count: entries.length };
}
