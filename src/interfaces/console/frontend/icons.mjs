// The icons of the console: `sprite` for pages, `states` for CSS, where a state's icon stands in front of its word.
export const sprite = [
  "activity", "bot", "calendar-clock", "chart-column", "circle-user", "download", "inbox", "key-round", "keyboard", "layout-dashboard", "list-ordered", "log-out", "menu", "message-square",
  "messages-square", "monitor-smartphone", "pencil", "play", "plug", "plus", "scroll-text", "search", "server", "settings", "square", "trash-2", "upload", "users", "wallet", "webhook", "workflow", "x",
];
export const states = ["ban", "circle-check", "circle-dot", "circle-pause", "circle-x", "clock", "hourglass", "loader-circle", "triangle-alert"];
