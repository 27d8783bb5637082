import { expect, test } from 'vitest'
import { oneLine, plain, visible } from './text'

test('terminal escapes, control characters and reordering characters are removed, lines and tabs stay', () => {
  expect(plain('a\u001b[31mred\u001b[0m\tb\r\nc\u202edesrever\u0007')).toBe('ared\tb\ncdesrever')
  expect(plain('\u001b]8;;http://x\u0007link\u001b]8;;\u0007')).toBe('link')
  expect(plain(null)).toBe('')
})

test('what cannot be seen is written out where a person approves', () => {
  expect(visible('rm\u202e -rf\u200b')).toBe('rm‹U+202E› -rf‹U+200B›')
})

test('one line is cut at whole characters', () => {
  expect(oneLine('一二三四五', 3)).toBe('一二…')
  expect(oneLine('a\n b', 10)).toBe('a b')
})
