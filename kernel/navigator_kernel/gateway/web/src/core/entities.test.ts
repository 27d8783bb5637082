import { expect, test } from 'vitest'
import { decodeHTMLStrict } from './entities'

test('numbers and common names become their characters, other names stay', () => {
  expect(decodeHTMLStrict('&lt;b&gt; &#20013;&#x56fd; &copy; &hellip;')).toBe('<b> 中国 © …')
  expect(decodeHTMLStrict('&nosuchname; &amp &;')).toBe('&nosuchname; &amp &;')
})

test('numbers that are no character become the replacement character', () => {
  expect(decodeHTMLStrict('&#0;&#xD800;&#x110000;')).toBe('\ufffd\ufffd\ufffd')
})
