import { ref, type Ref } from 'vue'
import { useI18n } from 'vue-i18n'
import { useUi } from '@/stores/ui'

/** Runs the actions of a component one at a time. `busy` names the one under way, or is empty; what goes wrong is shown
 * as a notice. */
export function useActions(): { busy: Ref<string>; act: (name: string, work: () => Promise<unknown>) => Promise<void> } {
  const ui = useUi()
  const { t } = useI18n()
  const busy = ref('')

  async function act(name: string, work: () => Promise<unknown>): Promise<void> {
    busy.value = name
    try {
      await work()
    } catch (error) {
      ui.fail(error, t('shell.failed'))
    } finally {
      busy.value = ''
    }
  }

  return { busy, act }
}
