/** What a new workflow begins with: one step that every project can run. */

export interface Words {
  description: string
  step: string
}

export function template(name: string, words: Words): string {
  return `---
name: ${name}
version: 1.0.0
description: ${words.description}
depends_on: [word-count]
---

## Step 1: ${words.step}

- skill: word-count
- input: /word-count text="$ARGUMENTS"
`
}

/** The text with another name in its head, if it has the one of before. */
export function renamed(text: string, before: string, now: string): string {
  return text.replace(/^name: (.*)$/m, (line, held: string) => (held === before ? `name: ${now}` : line))
}
