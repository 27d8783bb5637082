import { expect, it } from 'vitest'
import { kindsOf } from './diff'

it('colours a line by its sign, also one that looks like a heading', () => {
  const lines = ['--- a/x', '+++ b/x', '@@ -1,2 +1,2 @@', '--- a/y', '+++ b/y', '+…more', ' kept', '-…less']
  expect(kindsOf(lines)).toEqual(['file', 'file', 'place', 'removed', 'added', 'added', '', 'removed'])
})

it('knows the headings of several files', () => {
  const lines = ['--- a/x', '+++ b/x', '@@ -1 +1 @@', '-a', '+b', '--- /dev/null', '+++ b/y', '@@ -0,0 +1 @@', '+c']
  expect(kindsOf(lines)).toEqual(['file', 'file', 'place', 'removed', 'added', 'file', 'file', 'place', 'added'])
})
