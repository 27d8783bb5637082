import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { firstLocale, i18n, useLanguage } from './i18n'
import { router } from './router'
import { takeFragment, useAccess } from './stores/access'
import { applyTheme, useUi } from './stores/ui'
import './styles/base.css'
import './styles/parts.css'

const token = takeFragment() // before the router reads the address
const app = createApp(App)
app.use(createPinia())
app.use(i18n)
useLanguage(firstLocale())
applyTheme(useUi().theme)
useAccess().begin(token)
app.use(router)
app.mount('#app')
