/** The lines of a unified diff. */

export type Kind = 'file' | 'place' | 'added' | 'removed' | ''

/** What each line is. Only two lines directly before a place (`@@`) are the heading of a file: a line of the file itself
 * has a sign in front of it, and never begins with `@@`. */
export function kindsOf(lines: readonly string[]): Kind[] {
  const isHeading = (at: number) =>
    Boolean(lines[at]?.startsWith('--- ') && lines[at + 1]?.startsWith('+++ ') && lines[at + 2]?.startsWith('@@'))
  return lines.map((line, at) => {
    if (isHeading(at) || isHeading(at - 1)) return 'file'
    if (line.startsWith('@@')) return 'place'
    return line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : ''
  })
}
