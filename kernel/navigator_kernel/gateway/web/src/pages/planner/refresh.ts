/** Reads a list at once, and again where a turn changed it, events were missed, or the person comes back to the page. */

import { onBeforeUnmount, onMounted, watch } from 'vue'
import { useTurns } from '@/stores/turns'

export function useRefresh(targets: readonly string[], read: () => unknown): void {
  const turns = useTurns()
  const end = turns.listen((event) => {
    if (event.type !== 'UICommand' || event.payload.type !== 'refresh') return
    if (targets.includes(String(event.payload.payload['target']))) void read()
  })
  const onShown = () => document.visibilityState === 'visible' && void read()
  onMounted(() => {
    void read()
    document.addEventListener('visibilitychange', onShown)
  })
  onBeforeUnmount(() => {
    end()
    document.removeEventListener('visibilitychange', onShown)
  })
  watch(() => turns.resets, () => void read())
}
