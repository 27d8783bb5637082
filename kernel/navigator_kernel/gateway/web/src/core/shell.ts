/** Words for a command line that a person copies. */

const PLAIN = /^[\w@%+=:,./-]+$/

/** The word as a POSIX shell reads it unchanged. */
export function shellWord(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export function shellLine(...words: string[]): string {
  return words.map(shellWord).join(' ')
}
