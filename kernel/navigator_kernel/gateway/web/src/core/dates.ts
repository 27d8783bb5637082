/** Times as a person of this browser reads and writes them: in their language and their time zone. */

const DAY = 86_400_000 // milliseconds

/** The browser's own form of the page's language, as `en-GB` for `en`. */
export function languageOf(locale: string, wanted: readonly string[] = navigator.languages): string {
  return wanted.find((one) => one.toLowerCase().split('-')[0] === locale) ?? (locale === 'zh' ? 'zh-CN' : 'en')
}

/** A time, or a span of time, without a year where it is this one. */
export function moment(start: string, end: string | null, language: string, now: Date = new Date()): string {
  const from = new Date(start)
  const options: Intl.DateTimeFormatOptions = {
    weekday: 'short',
    month: 'short',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    ...(from.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' }),
  }
  const format = new Intl.DateTimeFormat(language, options)
  return end ? format.formatRange(from, new Date(end)) : format.format(from)
}

/** The hour and minute, for a list whose heading says the day. */
export function hour(start: string, end: string | null, language: string): string {
  const format = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit' })
  return end && isSameDay(new Date(start), new Date(end))
    ? format.formatRange(new Date(start), new Date(end))
    : format.format(new Date(start))
}

/** The value of an input of the type `datetime-local`. */
export function toInput(time: string | null): string {
  if (!time) return ''
  const at = new Date(time)
  const two = (number: number) => String(number).padStart(2, '0')
  const day = `${String(at.getFullYear()).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`
}

/** ISO 8601 in UTC; null for an empty or broken input. */
export function fromInput(value: string): string | null {
  const at = new Date(value)
  return value && !Number.isNaN(at.getTime()) ? at.toISOString() : null
}

export function startOfDay(at: Date, days = 0): Date {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate() + days)
}

export function isSameDay(one: Date, other: Date): boolean {
  return startOfDay(one).getTime() === startOfDay(other).getTime()
}

/** The midnight that ends the week of `at`. Weeks begin as they do where the language is spoken. */
export function endOfWeek(at: Date, language: string): Date {
  const first = firstDay(language) % 7
  return startOfDay(at, ((first - at.getDay() + 6) % 7) + 1)
}

/** 1 is Monday, 7 Sunday. */
function firstDay(language: string): number {
  const held = new Intl.Locale(language) as Intl.Locale & { getWeekInfo?: () => { firstDay: number } }
  return held.getWeekInfo?.().firstDay ?? 1
}

/** How long ago or how far ahead, in words and whole units; empty for a broken time. */
export function distance(time: string, language: string, now: Date = new Date()): string {
  const gone = new Date(time).getTime() - now.getTime()
  if (Number.isNaN(gone)) return ''
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
  const steps: [number, Intl.RelativeTimeFormatUnit][] = [[DAY, 'day'], [3_600_000, 'hour'], [60_000, 'minute']]
  const [size, unit] = steps.find(([length]) => Math.abs(gone) >= length) ?? [1_000, 'second']
  return format.format(Math.trunc(gone / size), unit)
}
