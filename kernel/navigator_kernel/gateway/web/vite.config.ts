/// <reference types="vitest/config" />
import { fileURLToPath } from 'node:url'
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

// The built page lies beside this folder, is committed, and goes into the wheel; this folder does not.
export default defineConfig({
  base: './',
  plugins: [vue()],
  resolve: { alias: { '@': source('.'), entities: source('core/entities.ts'), 'punycode.js': source('core/hostnames.ts') } },
  define: { __VUE_OPTIONS_API__: 'false', __VUE_PROD_DEVTOOLS__: 'false', __VUE_I18N_LEGACY_API__: 'false' },
  build: {
    outDir: '../page',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8766', '/healthz': 'http://127.0.0.1:8766' } },
  test: { environment: 'happy-dom', include: ['src/**/*.test.ts'] },
})
