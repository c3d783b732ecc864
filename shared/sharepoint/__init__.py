"""SharePoint and OneDrive libraries: mirrors their files and permissions into the documents container."""
