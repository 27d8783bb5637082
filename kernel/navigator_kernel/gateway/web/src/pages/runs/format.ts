/** Times, numbers and prices in the language of the page. */

const tag = (locale: string) => (locale === 'zh' ? 'zh-CN' : 'en')

/** A duration such as `320 ms`, `1.5 s` or `2 min 5 s`; a space before the unit. */
export function duration(seconds: number, locale: string): string {
  const number = (value: number, digits = 0) => value.toLocaleString(tag(locale), { maximumFractionDigits: digits })
  const [ms, s, min] = locale === 'zh' ? ['毫秒', '秒', '分'] : ['ms', 's', 'min']
  if (seconds < 1) return `${number(Math.round(seconds * 1000))} ${ms}`
  if (seconds < 60) return `${number(seconds, 1)} ${s}`
  return `${number(Math.floor(seconds / 60))} ${min} ${number(Math.floor(seconds % 60))} ${s}`
}

/** The day and the time of an ISO 8601 time. */
export function moment(ts: string, locale: string): string {
  const date = new Date(ts)
  if (Number.isNaN(date.getTime())) return ''
  return new Intl.DateTimeFormat(tag(locale), { dateStyle: 'medium', timeStyle: 'short' }).format(date)
}

export function count(value: number, locale: string): string {
  return value.toLocaleString(tag(locale))
}

/** US dollars, with as many digits as a small price needs. */
export function dollars(value: number, locale: string): string {
  const digits = value === 0 || value >= 1 ? 2 : 6
  const options = { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: digits } as const
  return new Intl.NumberFormat(tag(locale), options).format(value)
}
