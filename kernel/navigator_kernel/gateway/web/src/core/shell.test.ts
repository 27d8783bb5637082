import { expect, test } from 'vitest'
import { shellLine } from './shell'

test('a word is one word to a shell, whatever it holds', () => {
  expect(shellLine('navigator', 'skill', 'trust', 'pdf')).toBe('navigator skill trust pdf')
  expect(shellLine('a b', "it's", '$(rm -rf ~)', '')).toBe(`'a b' 'it'\\''s' '$(rm -rf ~)' ''`)
})
