/** Requests to the gateway. The token goes in a header, never into an address. */

export interface Problem {
  status: number
  code: string
  detail: string
  hint: string
  /** Facts for programs. */
  data?: Record<string, unknown>
}

export class ApiError extends Error implements Problem {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly hint: string
  readonly data: Record<string, unknown>

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ApiError'
    this.status = problem.status
    this.code = problem.code
    this.detail = problem.detail
    this.hint = problem.hint
    this.data = problem.data ?? {}
  }
}

type Query = Record<string, string | number | boolean | undefined>

interface Options {
  query?: Query
  body?: unknown
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
}

let token = ''
let refused: () => void = () => undefined

/** `onRefused` is called when the gateway does not know the token any more. */
export function useToken(value: string, onRefused: () => void): void {
  token = value
  refused = onRefused
}

/** The raw answer; ApiError for a problem document, and where the gateway cannot be reached (status 0). */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}`, ...options.headers }
  const init: RequestInit = { method, headers, cache: 'no-store', credentials: 'omit', redirect: 'error' }
  if (options.signal) init.signal = options.signal
  if (options.body !== undefined) {
    headers['Content-Type'] ??= 'application/json'
    init.body = options.body instanceof Blob ? options.body : JSON.stringify(options.body)
  }
  let answer: Response
  try {
    answer = await fetch(address(path, options.query), init)
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError({ status: 0, code: 'unreachable', detail: '', hint: '' })
  }
  if (answer.ok || answer.status === 304) return answer
  const problem = await problemIn(answer)
  if (problem.status === 401) refused()
  throw new ApiError(problem)
}

async function read<T>(method: string, path: string, options: Options): Promise<T> {
  const answer = await send(method, path, options)
  return (answer.status === 204 ? undefined : await answer.json()) as T
}

export interface Tagged<T> {
  value: T
  tag: string
}

export const api = {
  get: <T>(path: string, query?: Query, signal?: AbortSignal) => read<T>('GET', path, { query: query ?? {}, signal }),
  post: <T>(path: string, body: unknown = {}, query?: Query, headers: Record<string, string> = {}) =>
    read<T>('POST', path, { body, query: query ?? {}, headers }),
  patch: <T>(path: string, body: unknown, headers: Record<string, string> = {}) =>
    read<T>('PATCH', path, { body, headers }),
  put: <T>(path: string, body: unknown, headers: Record<string, string> = {}) => read<T>('PUT', path, { body, headers }),
  remove: <T = undefined>(path: string, headers: Record<string, string> = {}) => read<T>('DELETE', path, { headers }),
  /** The value with its entity tag, to be sent back as `If-Match`. */
  tagged: async <T>(path: string): Promise<Tagged<T>> => {
    const answer = await send('GET', path)
    return { value: (await answer.json()) as T, tag: answer.headers.get('ETag') ?? '' }
  },
}

/** A part of a path, encoded; the slashes of a name such as `plugin/name` stay. */
export function part(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/')
}

function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return search ? `${path}?${search}` : path
}

async function problemIn(answer: Response): Promise<Problem> {
  try {
    const held = (await answer.json()) as Partial<Problem> & { title?: string }
    return {
      status: answer.status,
      code: held.code ?? 'error',
      detail: held.detail ?? held.title ?? answer.statusText,
      hint: held.hint ?? '',
      data: held.data ?? {},
    }
  } catch {
    return { status: answer.status, code: 'error', detail: answer.statusText, hint: '' }
  }
}
