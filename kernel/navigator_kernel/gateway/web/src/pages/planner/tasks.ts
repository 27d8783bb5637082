/** Tasks: read, ordered by time, and changed only as they were seen. */

import { ref, shallowRef, type Ref } from 'vue'
import { api, ApiError, type Tagged } from '@/core/http'
import { endOfWeek, startOfDay } from '@/core/dates'

export interface Task {
  id: number
  title: string
  description: string
  project_id: number
  priority: number
  status: 'open' | 'done'
  start_time: string | null
  end_time: string | null
  created_at: string
  updated_at: string
}

export interface Project {
  id: number
  name: string
}

export type Changes = Partial<Pick<Task, 'title' | 'description' | 'project_id' | 'priority' | 'status' | 'start_time' | 'end_time'>>

export const GROUPS = ['overdue', 'today', 'week', 'later', 'untimed'] as const
export type Group = (typeof GROUPS)[number]
export const DEFAULT_PROJECT = 1
export const PRIORITIES = [5, 4, 3, 2, 1] as const

const PAGE = 200
const MOST = 5_000 // open tasks that a page holds

/** Open tasks by when they are due. One that has begun and not ended is today's. */
export function grouped(tasks: readonly Task[], now: Date, language: string): Map<Group, Task[]> {
  const today = startOfDay(now).getTime()
  const tomorrow = startOfDay(now, 1).getTime()
  const week = endOfWeek(now, language).getTime()
  const found = new Map<Group, Task[]>(GROUPS.map((name) => [name, []]))
  for (const task of tasks) found.get(groupOf(task))?.push(task)
  return found

  function groupOf(task: Task): Group {
    if (!task.start_time) return 'untimed'
    const start = new Date(task.start_time).getTime()
    const end = task.end_time ? new Date(task.end_time).getTime() : start
    if (start < today) return end < today ? 'overdue' : 'today'
    return start < tomorrow ? 'today' : start < week ? 'week' : 'later'
  }
}

/** Whether somebody else was faster, so that the write was refused. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 412 || error.code === 'conflict')
}

/** What is different in `now`. */
export function changesOf(before: Task, now: Task): Changes {
  const names = ['title', 'description', 'project_id', 'priority', 'status', 'start_time', 'end_time'] as const
  return Object.fromEntries(names.filter((name) => before[name] !== now[name]).map((name) => [name, now[name]]))
}

export function readTask(id: number): Promise<Tagged<Task>> {
  return api.tagged<Task>(`/api/tasks/${id}`)
}

/** The tag of a task that is still as it was shown; the conflict as an ApiError with status 412. */
async function tagOf(shown: Task): Promise<Record<string, string>> {
  const held = await readTask(shown.id)
  if (held.value.updated_at !== shown.updated_at) {
    throw new ApiError({ status: 412, code: 'precondition', detail: '', hint: '' })
  }
  return { 'If-Match': held.tag }
}

export async function changeTask(shown: Task, changes: Changes): Promise<Task> {
  return api.patch<Task>(`/api/tasks/${shown.id}`, { changes }, await tagOf(shown))
}

export async function snoozeTask(shown: Task, until: string): Promise<Task> {
  return api.post<Task>(`/api/tasks/${shown.id}/snooze`, { until }, {}, await tagOf(shown))
}

export async function deleteTask(shown: Task): Promise<void> {
  await api.remove(`/api/tasks/${shown.id}`, await tagOf(shown))
}

interface Page {
  tasks: Task[]
  next: string
}

/** The lists of the page; a newer reading replaces an older one that is still under way. */
export function useTasks(project: Ref<number>, words: Ref<string>) {
  const open = shallowRef<Task[]>([])
  const done = shallowRef<Task[]>([])
  const isMoreDone = ref(false)
  const isRead = ref(false)
  const error = ref<unknown>(null)
  let count = 0
  let cursor = ''

  function filter(status: Task['status']) {
    return { status, limit: PAGE, words: words.value.trim(), ...(project.value ? { project_id: project.value } : {}) }
  }

  async function read(): Promise<void> {
    const mine = ++count
    try {
      const [found, ended] = await Promise.all([allOpen(), api.get<Page>('/api/tasks', filter('done'))])
      if (mine !== count) return
      open.value = found
      done.value = ended.tasks
      cursor = ended.next
      isMoreDone.value = cursor !== ''
      error.value = null
    } catch (problem) {
      if (mine !== count) return
      error.value = problem
    }
    isRead.value = true
  }

  async function allOpen(): Promise<Task[]> {
    const found: Task[] = []
    let next = ''
    do {
      const page: Page = await api.get<Page>('/api/tasks', { ...filter('open'), cursor: next })
      found.push(...page.tasks)
      next = page.next
    } while (next && found.length < MOST)
    return found
  }

  async function readMoreDone(): Promise<void> {
    const mine = count
    const page = await api.get<Page>('/api/tasks', { ...filter('done'), cursor })
    if (mine !== count) return
    done.value = [...done.value, ...page.tasks]
    cursor = page.next
    isMoreDone.value = cursor !== ''
  }

  return { open, done, isMoreDone, isRead, error, read, readMoreDone }
}

/** All projects, the default one first. */
export async function readProjects(): Promise<Project[]> {
  const found: Project[] = []
  let next = ''
  do {
    const page: { projects: Project[]; next: string } = await api.get('/api/projects', { cursor: next, limit: 200 })
    found.push(...page.projects)
    next = page.next
  } while (next && found.length < MOST)
  return found
}
