/** Named characters in Markdown (`&copy;`), in place of the package `entities`, whose table of all 2,231 names would be a
 * twentieth of the page. Another name stays as it is written. */

const NAMED = new Map(
  Object.entries({
    amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', deg: '°',
    hellip: '…', mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', laquo: '«', raquo: '»',
    bull: '•', middot: '·', times: '×', divide: '÷', plusmn: '±', le: '≤', ge: '≥', ne: '≠', asymp: '≈', infin: '∞',
    larr: '←', rarr: '→', uarr: '↑', darr: '↓', harr: '↔', euro: '€', pound: '£', yen: '¥', cent: '¢', sect: '§',
    para: '¶', frac12: '½', frac14: '¼', frac34: '¾', sup2: '²', sup3: '³', micro: 'µ', check: '✓', cross: '✗',
    auml: 'ä', ouml: 'ö', uuml: 'ü', Auml: 'Ä', Ouml: 'Ö', Uuml: 'Ü', szlig: 'ß', eacute: 'é', egrave: 'è',
    alpha: 'α', beta: 'β', gamma: 'γ', delta: 'δ', lambda: 'λ', mu: 'μ', pi: 'π', sigma: 'σ', omega: 'ω',
  }),
)

export function decodeHTMLStrict(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z][a-z0-9]*));/gi, (whole, hex?: string, tens?: string, name?: string) => {
    if (name) return NAMED.get(name) ?? whole
    const point = hex ? Number.parseInt(hex, 16) : Number(tens)
    return point === 0 || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? '\ufffd' : String.fromCodePoint(point)
  })
}
