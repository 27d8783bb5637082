import { createI18n } from 'vue-i18n'

export type Locale = 'en' | 'zh'
export const LOCALES: readonly Locale[] = ['en', 'zh']

/** The texts of one part of the page, in both languages, with the same keys. */
export interface Texts {
  en: Record<string, unknown>
  zh: Record<string, unknown>
}

const files = import.meta.glob<{ default: Texts }>('./locales/*.ts', { eager: true })

interface Message {
  [key: string]: string | Message
}

function merged(locale: Locale): Message {
  const entries = Object.entries(files).map(([path, file]) => [path.replace(/^.*\/|\.ts$/g, ''), file.default[locale]])
  return Object.fromEntries(entries) as unknown as Message
}

const KEPT = 'navigator.language'

export function firstLocale(): Locale {
  const kept = localStorage.getItem(KEPT)
  if (kept === 'en' || kept === 'zh') return kept
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

/** `t('skills.title')` is the text `title` of `locales/skills.ts`. */
const messages: Record<string, Message> = { en: merged('en'), zh: merged('zh') }

export const i18n = createI18n({
  legacy: false,
  locale: firstLocale() as string,
  fallbackLocale: 'en',
  messages,
  missingWarn: import.meta.env.DEV,
  fallbackWarn: import.meta.env.DEV,
})

export function useLanguage(locale: Locale): void {
  i18n.global.locale.value = locale
  localStorage.setItem(KEPT, locale)
  document.documentElement.lang = locale === 'zh' ? 'zh-CN' : 'en'
}
