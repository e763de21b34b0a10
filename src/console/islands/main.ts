import { addCopyButtons } from './copy.ts';
import { addGrantsPickers } from './grants-picker.tsx';
import { watchSession } from './session.ts';
import { addShortcuts } from './shortcuts.ts';
import { guardUnread } from './unread.ts';

watchSession();
addShortcuts();
addGrantsPickers();
addCopyButtons();
guardUnread();
