/** Text of skills, models and tools, made safe to show. */

const ESCAPES = new RegExp(String.raw`\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])`, 'g')
const CONTROLS = new RegExp(String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f]`, 'g')
// Characters that change the order of the text around them, or cannot be seen
const HIDDEN = new RegExp(String.raw`[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]`, 'gu')

/** Without terminal escapes, control characters and invisible or reordering characters. Lines and tabs stay. */
export function plain(text: unknown): string {
  const held = typeof text === 'string' ? text : text == null ? '' : String(text)
  return held.replace(/\r\n?/g, '\n').replace(ESCAPES, '').replace(CONTROLS, '').replace(HIDDEN, '')
}

/** One line of at most `limit` characters. */
export function oneLine(text: unknown, limit = 200): string {
  const held = plain(text).replace(/\s+/g, ' ').trim()
  const points = Array.from(held.slice(0, limit * 2 + 2))
  return points.length > limit ? `${points.slice(0, limit - 1).join('')}…` : points.join('')
}

/** A value as JSON with two spaces of indent, cleaned. */
export function json(value: unknown): string {
  return plain(JSON.stringify(value, null, 2) ?? '')
}

/** As `plain`, but what cannot be seen is written out: for what a person approves. */
export function visible(text: unknown): string {
  const held = typeof text === 'string' ? text : text == null ? '' : String(text)
  const shown = (char: string) => `‹U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`
  return held.replace(/\r\n/g, '\n').replace(CONTROLS, shown).replace(HIDDEN, shown)
}
