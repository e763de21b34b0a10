/** A button with `data-copy` copies the field of that id, and says so beside it. Without scripts it stays hidden. */
export function addCopyButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
    const field = document.querySelector<HTMLInputElement | HTMLTextAreaElement>(`#${button.dataset['copy']}`)!;
    const said = button.parentElement!.querySelector('[role=status]')!;
    field.addEventListener('focus', () => field.select());
    button.hidden = false;
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(field.value);
        said.textContent = 'Copied.';
        field.dispatchEvent(new Event('copy', { bubbles: true }));
      } catch {
        field.focus();
        said.textContent = 'Not copied: the browser does not allow it. The text is selected, copy it by the keyboard.';
      }
    });
  }
}
