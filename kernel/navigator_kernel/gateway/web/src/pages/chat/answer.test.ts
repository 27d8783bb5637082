import { describe, expect, it } from 'vitest'
import type { KernelEvent } from '@/core/events'
import { emptyTurn, isSummaryNew, take } from '@/core/turn'
import { add, entriesOf, type Talk } from '@/stores/chat'
import { answerTo, questionOf, resultOf, splitDiff } from './answer'
import { pageOf } from './commands'
import { begun, completed } from './completion'

let seq = 0
function turnOf(...events: [string, Record<string, unknown>, number?][]) {
  seq = 0
  const turn = emptyTurn('r1', 's')
  for (const [type, payload, step] of events) {
    const head = { run: 'r1', session: 's', turn: 0, seq: seq++, step: step ?? null, parent: null, ts: '2026-01-31T09:30:00Z' }
    take(turn, { ...head, type, payload } as unknown as KernelEvent)
  }
  return turn
}

describe('an answer', () => {
  it('shows the lines of what the kernel can do', () => {
    const turn = turnOf(['RunCompleted', { state: 'success', summary: 'x', sections: {}, data: { capabilities: ['a', 'b'] } }])
    expect(resultOf(turn).lines).toEqual(['a', 'b'])
  })

  it('offers skills and asks for missing parts', () => {
    const data = { reason: 'clarify', required: ['text'], options: [] }
    const asked: [string, Record<string, unknown>] = ['ClarificationAsked', { question: 'word-count needs: text', missing: ['text'] }]
    const turn = turnOf(asked, ['RunCompleted', { state: 'pending', summary: 'word-count needs: text', sections: {}, data }])
    expect(questionOf(turn)).toEqual({ text: 'word-count needs: text', missing: ['text'], options: [], near: [] })
  })

  it('does not repeat the summary of streamed text', () => {
    const turn = turnOf(
      ['RunContent', { text: 'I look.' }, 0],
      ['ToolCallStarted', { call: 'c', tool: 'read', args: {} }, 0],
      ['RunContent', { text: 'Done. **All**' }, 0],
      ['RunCompleted', { state: 'success', summary: 'I look.Done. **All**', sections: {} }],
    )
    expect(isSummaryNew(turn)).toBe(false)
  })

  it('names several values and quotes those with spaces', () => {
    expect(answerTo(['text'], { text: ' a b ' })).toBe('a b')
    expect(answerTo(['a', 'b'], { a: 'x', b: 'two words' })).toBe('a=x b="two words"')
  })

  it('is parted from the diff within a question', () => {
    expect(splitDiff('let it change a:\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n. Go on?')).toEqual({
      head: 'let it change a:',
      diff: '--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y',
      tail: 'Go on?',
    })
    expect(splitDiff('a list:\n--- x').diff).toBe('')
  })
})

describe('a conversation', () => {
  const entry = (run: string) => ({ run, message: run, answer: '', state: 'success', started: '', isLogged: true })

  it('keeps entries in the order of their runs, each once', () => {
    const talk: Talk = { entries: [entry('2')], next: '', isRead: true, isReading: false, error: null, sending: [] }
    add(talk, [entry('3'), entry('1'), { ...entry('2'), message: 'other' }])
    expect(talk.entries.map((one) => one.message)).toEqual(['1', '2', '3'])
  })

  it('is made of its history where logs are gone', () => {
    const said = (role: string, text: string) => ({ role, text, run: 'r', ts: 't' })
    expect(entriesOf([said('user', 'hi'), said('assistant', 'hello')])).toMatchObject([{ message: 'hi', answer: 'hello', isLogged: false }])
  })
})

describe('a completion', () => {
  it('begins at a mark', () => {
    expect(begun('/wo', 3)).toEqual({ mark: '/', at: 0, query: 'wo' })
    expect(begun('hi\n#re', 6)).toEqual({ mark: '#', at: 3, query: 're' })
    expect(begun('look at @src/a', 14)).toEqual({ mark: '@', at: 8, query: 'src/a' })
    expect(begun('统计@a', 4)).toEqual({ mark: '@', at: 2, query: 'a' })
    for (const text of ['a/b', 'me@example', '/word count', 'x #1']) expect(begun(text, text.length)).toBeNull()
  })

  it('replaces what was written', () => {
    const one = { value: '/word-count', label: 'word-count', detail: '', goesOn: false }
    expect(completed('/wo', 3, { mark: '/', at: 0, query: 'wo' }, one)).toEqual({ text: '/word-count ', caret: 12 })
  })
})

describe('a command for the page', () => {
  it('leads to pages of ours only', () => {
    expect(['planner', '/runs/x', 'tasks', '#/usage'].map(pageOf)).toEqual(['planner', 'runs', 'planner', 'usage'])
    for (const target of ['https://example.com', '//example.com', 'javascript:alert(1)', 7, '']) expect(pageOf(target)).toBeNull()
  })
})
