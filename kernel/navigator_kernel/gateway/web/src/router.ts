import { createRouter, createWebHashHistory, type RouteRecordRaw } from 'vue-router'

/** The pages in the order of the navigation; `icon` is a name of components/Icon.vue. */
export const PAGES = [
  { name: 'chat', path: '/chat/:session?', icon: 'chat', view: () => import('@/pages/ChatPage.vue') },
  { name: 'inbox', path: '/inbox', icon: 'inbox', view: () => import('@/pages/InboxPage.vue') },
  { name: 'skills', path: '/skills', icon: 'skills', view: () => import('@/pages/SkillsPage.vue') },
  { name: 'install', path: '/install', icon: 'install', view: () => import('@/pages/InstallPage.vue') },
  { name: 'runs', path: '/runs/:run?', icon: 'runs', view: () => import('@/pages/RunsPage.vue') },
  { name: 'workflows', path: '/workflows', icon: 'workflows', view: () => import('@/pages/WorkflowsPage.vue') },
  { name: 'planner', path: '/planner', icon: 'planner', view: () => import('@/pages/PlannerPage.vue') },
  { name: 'usage', path: '/usage', icon: 'usage', view: () => import('@/pages/UsagePage.vue') },
  { name: 'health', path: '/health', icon: 'health', view: () => import('@/pages/HealthPage.vue') },
] as const

export type PageName = (typeof PAGES)[number]['name']

const routes: RouteRecordRaw[] = [
  { path: '/', redirect: '/chat' },
  ...PAGES.map(({ name, path, view }) => ({ name, path, component: view })),
  { path: '/:rest(.*)*', redirect: '/chat' },
]

// The address behind `#` never reaches the server, so that it needs no rule for the page's own addresses
export const router = createRouter({ history: createWebHashHistory(), routes })
