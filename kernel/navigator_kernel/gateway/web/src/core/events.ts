/** The events of the kernel's run log, as the gateway sends them with `?events=all` (docs/concepts/events.md). */

export interface EventHead {
  run: string
  session: string
  turn: number
  seq: number
  step: number | null
  parent: number | null
  ts: string
}

export interface Candidate {
  name: string
  score: number
  confidence: number
  parts: Record<string, number>
}

export interface Decision {
  kind: string
  entity: string | null
  candidates: string[]
  confidence: number
  tier: string
  reason: string
}

export interface Payloads {
  RunStarted: { session: string; message: string; language: string }
  SkillActivated: { skill: string; agent: string; digest: string; text?: string }
  ToolsLeftOut: { skill: string; tools: string[] }
  RunContent: { text: string }
  ToolCallStarted: { call: string; tool: string; args: Record<string, unknown> }
  ToolCallCompleted: { call: string; tool: string; state: string; elapsed: number; result: string }
  UICommand: { type: 'toast' | 'refresh' | 'navigate' | 'modal'; payload: Record<string, unknown> }
  RunCompleted: { state: string; summary: string; sections: Record<string, string[]>; data?: Record<string, unknown> }
  RunError: { error: Record<string, unknown> }
  RunCancelled: { reason: string }
  RouteDecided: { decision: Decision; trace: string[] }
  StepStarted: { agent: string; packet: Record<string, unknown> }
  StepCompleted: { agent: string; report: Record<string, unknown> }
  ApprovalRequested: { subject: string; detail: string; id: string; expires: string }
  ApprovalResolved: { subject: string; granted: boolean }
  ClarificationAsked: { question: string; missing: string[] }
  Progress: { text: string; done: number | null }
  Usage: {
    model: string
    input_tokens: number
    output_tokens: number
    cached_tokens: number
    cost: number | null
    phase: number
    skill: string
    requests: number
    unknown: number
  }
  SkillsOffered: { count: number }
  SkillsShortlisted: { candidates: Candidate[]; band: string; reason: string }
  SkillChosen: { skill: string; tier: string; confidence: number }
  SkillLoaded: { skill: string; kind: string; digest: string }
  SkillUsed: { skill: string; state: string }
}

export type Kind = keyof Payloads
export type KernelEvent = { [K in Kind]: EventHead & { type: K; payload: Payloads[K] } }[Kind]
