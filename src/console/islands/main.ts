import { watchSession } from './session.ts';
import { addShortcuts } from './shortcuts.ts';

watchSession();
addShortcuts();
