/** A field with `data-shortcut` gets the focus by that character, unless one is being typed elsewhere. */
export function addShortcuts(): void {
  const fields = document.querySelectorAll<HTMLInputElement>('[data-shortcut]');
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.target as Element).closest('input, textarea, select')) return;
    for (const field of fields)
      if (field.dataset['shortcut'] === event.key) {
        event.preventDefault();
        field.focus();
      }
  });
}
