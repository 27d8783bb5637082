/** Markdown as virtual nodes: no HTML is made of foreign text, so that nothing has to be sanitised. */

import MarkdownIt, { type Token } from 'markdown-it'
import { h, type Component, type VNodeChild } from 'vue'
import { plain } from './text'

const parser = new MarkdownIt('default', { html: false, linkify: true, breaks: false })
parser.disable(['image']) // a picture would be a request to another host

const BLOCKS: Record<string, string> = {
  paragraph_open: 'p',
  blockquote_open: 'blockquote',
  bullet_list_open: 'ul',
  ordered_list_open: 'ol',
  list_item_open: 'li',
  table_open: 'table',
  thead_open: 'thead',
  tbody_open: 'tbody',
  tr_open: 'tr',
  th_open: 'th',
  td_open: 'td',
}
const INLINE: Record<string, string> = { strong_open: 'strong', em_open: 'em', s_open: 's' }

/** The text in pieces that end at an empty line outside of fences, each of at least `size` characters: a piece that is
 * whole never changes while more text comes. */
export function pieces(text: string, size = 1_500): string[] {
  const found: string[] = []
  let held: string[] = []
  let length = 0
  let fence = ''
  for (const line of text.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark && !fence) fence = mark
    else if (mark && fence && mark[0] === fence[0] && mark.length >= fence.length) fence = ''
    held.push(line)
    length += line.length + 1
    const isApart = line.trim() === '' && !fence
    if ((isApart && length >= size) || length > 50_000) {
      found.push(held.join('\n'))
      held = []
      length = 0
    }
  }
  if (held.length) found.push(held.join('\n'))
  return found
}

/** The nodes of Markdown text. `link` is what an address is shown with. */
export function nodes(text: string, link: Component): VNodeChild[] {
  return new Walk(parser.parse(plain(text), {}), link).all()
}

class Walk {
  private at = 0

  constructor(
    private readonly tokens: Token[],
    private readonly link: Component,
  ) {}

  all(): VNodeChild[] {
    const found: VNodeChild[] = []
    while (this.at < this.tokens.length) {
      const token = this.tokens[this.at++] as Token
      if (token.nesting === -1) return found
      found.push(this.node(token))
    }
    return found
  }

  private node(token: Token): VNodeChild {
    const block = BLOCKS[token.type] ?? INLINE[token.type]
    if (block) return this.element(block, token)
    switch (token.type) {
      case 'heading_open':
        return h(`h${Math.min(6, Number(token.tag.slice(1)) + 2)}`, this.all())
      case 'inline':
        return new Walk(token.children ?? [], this.link).all()
      case 'fence':
      case 'code_block':
        return h('pre', { class: 'code', tabindex: 0 }, [h('code', token.content)])
      case 'code_inline':
        return h('code', token.content)
      case 'link_open': {
        const href = String(token.attrGet('href') ?? '')
        const children = this.all()
        return h(this.link, { href }, { default: () => children })
      }
      case 'softbreak':
        return '\n'
      case 'hardbreak':
        return h('br')
      case 'hr':
        return h('hr')
      default:
        return token.content
    }
  }

  private element(name: string, token: Token): VNodeChild {
    if (token.hidden) return this.all()
    const start = name === 'ol' ? token.attrGet('start') : null
    const align = /text-align:\s*(left|right|center)/.exec(String(token.attrGet('style') ?? ''))?.[1]
    const held = this.all()
    const element = h(name, { ...(start ? { start } : {}), ...(align ? { class: `to-${align}` } : {}) }, held)
    return name === 'table' ? h('div', { class: 'tablewrap', tabindex: 0 }, [element]) : element
  }
}
